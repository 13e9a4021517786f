"""Grafana's dashboard without a Grafana: panels with an id and a place of their own, expressions that Prometheus can read,
and no metric that carpool does not have."""
import json
import re

import tools
from shell import ROOT

DASHBOARD = ROOT / "deploy/grafana/carpool.json"
NAME = re.compile(r"\b((?:carpool|process)_[a-z_]+)")


def cells(panel):
    place = panel["gridPos"]
    return {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}


def readable(judge, expressions, folder):
    """Checks expressions by promtool as recording rules, after values replace Grafana's variables."""
    promtool = tools.have("promtool")
    if not promtool:
        return judge.skip("promtool is not installed")
    rules = [{"record": "panel:%d" % n, "expr": e.replace("$__rate_interval", "5m")} for n, e in enumerate(expressions)]
    path = folder / "dashboard-rules.json"
    path.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    return judge.take(judge.log.run(promtool, "check", "rules", path) == 0, "dashboard's expressions")


def check(judge, folder):
    panels = json.loads(DASHBOARD.read_text())["panels"]
    judge.take(len({p["id"] for p in panels}) == len(panels), "dashboard's ids")
    judge.take(len(set().union(*map(cells, panels))) == sum(len(cells(p)) for p in panels), "dashboard's places")
    expressions = [t["expr"] for p in panels for t in p.get("targets", [])]
    known = set(NAME.findall((ROOT / "docs/metrics.md").read_text()))
    used = {re.sub("_(bucket|sum|count)$", "", name) for e in expressions for name in NAME.findall(e)}
    judge.take(used and used <= known, "dashboard's metrics", " ".join(sorted(used - known)))
    readable(judge, expressions, folder)
