"""Each rule fires on the offence it names, and is silent on the clean line beside it."""
import json
import subprocess

import pytest

import layering
import links
import measured
import mutant_texts
import repetition
import size
import style
from tree import ROOT, Tree

CMAKE = """carpool_component(base)
carpool_component(exec LINK carpool_base PRIVATE PkgConfig::uv)
carpool_component(pool LINK carpool_base)
carpool_component(net DIRS proxy/net proxy/net/dns LINK carpool_base carpool_exec carpool_pool)
carpool_component(proxy LINK carpool_net)
"""


@pytest.fixture
def tree(tmp_path):
    """make({path: text}) -> a Tree of these files."""
    def make(files):
        subprocess.run(["git", "init", "-q", tmp_path], check=True)
        for name, content in {"CMakeLists.txt": CMAKE, **files}.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(content)
        return Tree(tmp_path)
    return make


def where(offences):
    return [(o.path, o.line) for o in offences]


def test_a_component_includes_only_components_below_it(tree):
    t = tree({"exec/loop.h": '#include "base/clock.h"\n#include "pool/core/pool.h"\n',
              "proxy/net/dial.h": '#include "exec/loop.h"\n#include "pool/core/pool.h"\n#include "proxy/main.h"\n',
              "pool/core/pool.h": "", "base/clock.h": '#include "clock_detail.h"\n'})
    assert where(layering.include_direction(t)) == [("base/clock.h", 1), ("exec/loop.h", 2), ("proxy/net/dial.h", 3)]


def test_a_directory_of_the_pool_includes_only_those_before_it(tree):
    t = tree({"pool/core/entry.h": '#include "pool/atomic.h"\n#include "pool/policy/limits.h"\n#include "pool/queue/borrower.h"\n',
              "pool/queue/borrower.h": '#include "pool/core/entry.h"\n', "pool/policy/limits.h": "", "pool/atomic.h": ""})
    (t.root / "CMakeLists.txt").write_text(CMAKE.replace("(pool LINK", "(pool DIRS pool pool/core pool/policy pool/queue LINK"))
    assert where(layering.include_direction(t)) == [("pool/core/entry.h", 3)]


def test_the_direction_cannot_be_loosened_in_cmake(tree):
    t = tree({})
    (t.root / "CMakeLists.txt").write_text(CMAKE.replace("exec LINK carpool_base", "exec LINK carpool_base carpool_pool"))
    assert [o.what for o in layering.include_direction(t)] == ["component exec reaches component pool"]


def test_a_library_has_one_wrapper(tree):
    t = tree({"exec/uv/loop.cc": "#include <uv.h>\n", "exec/loop.cc": "#include <uv.h>\n",
              "proxy/net/tls/client_context.cc": "#include <openssl/ssl.h>\n", "proxy/net/dial_impl.cc": "#include <openssl/ssl.h>\n",
              "proxy/commands/libraries.cc": "#include <uv.h>\n", "tests/unit/exec_loop_test.cc": "#include <gtest/gtest.h>\n"})
    assert where(layering.one_wrapper(t)) == [("exec/loop.cc", 1), ("proxy/net/dial_impl.cc", 1)]


def test_json_is_read_and_written_through_its_bounds(tree):
    t = tree({"proxy/server/admin/a.cc": "Json a = Json::parse(text);\nJson b = *read_json<Json>(text, {});\n",
              "proxy/commands/cli/b.cc": "out << json.dump(2);\nout << json_text(json, 2);\n", "proxy/server/executors.cc": "pool_.dump();\n"})
    assert where(style.bounded_json(t)) == [("proxy/commands/cli/b.cc", 1), ("proxy/server/admin/a.cc", 1)]


def test_atomics_live_in_named_files(tree):
    t = tree({"pool/core/entry_state.h": "std::atomic<int> a;\n", "proxy/exchange/exchange.h": "std::atomic<int> a;\n"})
    assert where(layering.named_atomics(t)) == [("proxy/exchange/exchange.h", 1)]


def test_an_order_that_the_explorer_does_not_see_is_named(tree):
    text = "a.store(1, std::memory_order_relaxed);\na.load(std::memory_order_acquire);\n"
    t = tree({"pool/core/a.h": text, "metrics/registry.cc": text, "metrics/counter.h": text})
    assert where(layering.ordered_atomics(t)) == [("metrics/counter.h", 2)]


def test_ownership_is_by_move_on_the_request_path(tree):
    t = tree({"pool/a.h": "std::shared_ptr<int> a;\n// no std::function here\n",
              "proxy/config/a.h": "std::function<void()> f;\n", "base/b.cc": "auto* p = new Thing();\nint renewed{};\n"})
    assert where(style.ownership(t)) == [("pool/a.h", 1), ("base/b.cc", 1)]


def test_words_that_put_work_off_are_found(tree):
    word = "TO" + "DO"
    assert where(style.unfinished(tree({"base/a.h": "// ok\n// %s: later\n" % word}))) == [("base/a.h", 2)]


def test_pauses_are_found_and_the_one_of_the_harness_is_not(tree):
    t = tree({"tests/unit/a_test.cc": "std::this_thread::sleep_for(1ms);\n", "tests/e2e/harness/wait.py": "time.sleep(1)\n",
              "tests/e2e/test_a.py": "# no sleep at all\n"})
    assert where(style.no_sleep(t)) == [("tests/unit/a_test.cc", 1)]


def test_a_call_that_a_signal_may_interrupt_is_found(tree):
    t = tree({"proxy/a.cc": "// ok\nn = ::recv(fd, p, 1, 0);\nif (errno == EINTR) return;\nreturn ::send(fd, p, 1, 0) == 1;\n",
              "proxy/b.cc": "// ok\nn = repeat_interrupted([&] { return ::recv(fd, p, 1, 0); });\n", "proxy/net/acceptor.cc": "// EINTR\n"})
    assert where(style.interrupted_calls(t)) == [("proxy/a.cc", 3), ("proxy/a.cc", 2), ("proxy/a.cc", 4)]


def test_paths_of_a_machine_are_found(tree):
    here = "/" + "work/main"
    t = tree({"docs/a.md": "see %s/x\n$root/work/fine\n" % here})
    assert where(style.machine_paths(t)) == [("docs/a.md", 1)]


def test_a_log_line_of_an_unknown_module_is_found(tree):
    t = tree({"proxy/telemetry/log_levels.h": 'kModules{"dns",\n"access"};\n', "proxy/a.cc": 'log::warn("dns", "x");\nlog::info("home", "x");\n'})
    assert where(style.log_modules(t)) == [("proxy/a.cc", 2)]


def test_a_log_module_without_a_line_is_found(tree):
    t = tree({"proxy/telemetry/log_levels.h": 'kModules{"dns",\n"pool"};\n', "proxy/a.cc": 'log::warn("dns", "x");\n'})
    assert where(style.log_modules(t)) == [("proxy/telemetry/log_levels.h", 1)]


def test_six_equal_lines_in_two_files_are_found(tree):
    body = "".join("  step_%d(a, b);\n\n" % i for i in range(6))
    t = tree({"base/a.cc": "// A.\nvoid f() {\n" + body + "}\n", "base/b.cc": "// B.\nvoid g() {\n  first();\n" + body + "}\n",
              "base/c.cc": "// C.\nvoid h() {\n" + body.replace("step_3", "other") + "}\n"})
    assert where(repetition.repeated_lines(t)) == [("base/b.cc", 4)]


def test_a_file_opens_with_its_idea(tree):
    t = tree({"base/a.h": "#pragma once\n", "base/b.h": "// B: the idea.\n#pragma once\n", "base/c.cc": '#include "base/c.h"\n',
              "base/c.h": "// C.\n", "base/d.cc": "int d;\n"})
    assert where(style.opening_comment(t)) == [("base/a.h", 1), ("base/d.cc", 1)]


def test_long_files_and_functions_are_found(tree):
    body = "".join("  x += %d;\n" % i for i in range(size.FUNCTION_LINES))
    t = tree({"base/a.cc": "void f(int x) {\n%s}\nvoid g() {}\n" % body, "base/b.cc": "\n" * (size.FILE_LINES + 1)})
    assert where(size.function_length(t)) == [("base/a.cc", 1)]
    assert where(size.file_length(t)) == [("base/b.cc", 1)]


def test_links_lead_somewhere(tree):
    t = tree({"README.md": "[a](docs/a.md) [b](docs/b.md)\n[c](docs/a.md#the-way) [d](docs/a.md#gone) [e](https://x.test/)\n",
              "docs/a.md": "# The way\n"})
    assert where(links.resolve(t)) == [("README.md", 1), ("README.md", 2)]


def test_a_link_is_named_after_its_file(tree):
    t = tree({"README.md": "[a.md](docs/a.md#b) [`docs/a.md`](docs/a.md) [a page](docs/a.md)\n[b.md](docs/a.md)\n[`b.md`](docs/a.md#b)\n",
              "docs/a.md": "# b\n"})
    assert where(links.resolve(t)) == [("README.md", 2), ("README.md", 3)]


def test_the_runbook_of_an_alert_is_a_heading(tree):
    t = tree({"docs/a.md": "# The way\n", "deploy/alerts.yml": 'runbook: "docs/a.md: The way"\nrunbook: "docs/a.md: Gone"\nrunbook: "docs/b.md: The way"\n'})
    assert where(links.runbooks(t)) == [("deploy/alerts.yml", 2), ("deploy/alerts.yml", 3)]
    t = tree({"docs/a.md": "# The way\n", "deploy/alerts.yml": '  - alert: A\n    runbook: "docs/a.md: The way"\n  - alert: B\n  - alert: C\n    runbook: "docs/a.md: The way"\n'})
    assert where(links.runbooks(t)) == [("deploy/alerts.yml", 3)]


def test_a_page_is_short_and_the_contents_name_it(tree):
    long = "## The one\n" + "\n" * links.PAGE_LINES + "## The other\n"
    t = tree({"docs/README.md": "[a](a.md#x) [c](c.md) [d](d.md)\n", "docs/a.md": "\n" * (links.PAGE_LINES + 1), "docs/b.md": "",
              "docs/c.md": "[The one](#the-one) · [The other](#the-other)\n" + long, "docs/d.md": "[The one](#the-one)\n" + long})
    assert where(links.pages(t)) == [("docs/a.md", links.PAGE_LINES + 1), ("docs/b.md", 1), ("docs/d.md", links.PAGE_LINES + 1)]


def test_a_comment_names_its_subject_first(tree):
    t = tree({"pool/a.h": "// What rests.\nint a;  // Closes idle connections.\n", "tests/unit/a_test.cc": "// Nobody asked.\n"})
    assert where(style.comment_opening(t)) == [("pool/a.h", 1), ("tests/unit/a_test.cc", 1)]


def test_comments_use_the_words_of_the_field(tree):
    t = tree({"pool/a.h": "// A seat of the pool.\nint seat;\n// A slot of the pool.\n", "docs/a.md": "A waiter is served.\nThen nobody waits.\nIts age says nothing.\n"})
    assert where(style.field_words(t)) == [("pool/a.h", 1), ("docs/a.md", 2), ("docs/a.md", 3)]


def test_units_do_not_include_each_other_in_a_cycle(tree):
    t = tree({"pool/a.h": "", "pool/a.cc": '#include "pool/b.h"\n', "pool/b.h": "", "pool/b.cc": '#include "pool/a.h"\n',
              "pool/c.cc": '#include "pool/a.h"\n'})
    assert where(layering.include_cycle(t)) == [("pool/a.h", 1)]


def test_headers_of_one_class_do_not_include_each_other_either(tree):
    t = tree({"exec/loop.h": '#include "exec/timer.h"\n', "exec/timer.h": "", "exec/timer.cc": '#include "exec/loop.h"\n'})
    assert where(layering.include_cycle(t)) == []
    t = tree({"exec/loop.h": '#include "exec/timer.h"\n', "exec/timer.h": '#include "exec/loop.h"\n'})
    assert where(layering.include_cycle(t)) == [("exec/loop.h", 1)]


def test_the_root_of_the_proxy_holds_few_files(tree):
    t = tree({"proxy/%d.cc" % i: "" for i in range(13)})
    assert where(layering.root_files(t)) == [("proxy", 1)]


DOCUMENTS = ("README.md", "docs/benchmarks.md", "docs/execution.md")


@pytest.fixture
def measured_tree(tree):
    """A Tree of the documents with figures, and of the results that they are made from."""
    results = [str(p.relative_to(ROOT)) for p in (ROOT / "tests/bench/results").glob("*.json")]
    t = tree({path: (ROOT / path).read_text() for path in (*DOCUMENTS, *results)})
    for path, text in measured.report.documents(t.root).items():
        (t.root / path).write_text(text)
    return t


@pytest.mark.parametrize("path", DOCUMENTS)
def test_a_figure_that_no_result_has_is_found(measured_tree, path):
    assert where(measured.figures(measured_tree)) == []
    file = measured_tree.root / path
    lines = file.read_text().splitlines(keepends=True)
    number = max(n for n, line in enumerate(lines) if line.startswith("| ") and " / " in line)
    lines[number] = lines[number].replace(" / ", " / 9", 1)
    file.write_text("".join(lines))
    assert where(measured.figures(measured_tree)) == [(path, number + 1)]


def test_a_result_that_the_documents_do_not_show_is_found(measured_tree):
    results = measured_tree.root / "tests/bench/results/peers.json"
    rounds = json.loads(results.read_text())["conditions"]["rounds"]  # all of the first row: a median may hide one
    results.write_text(results.read_text().replace('"cpu": ', '"cpu": 9', rounds))
    assert [path for path, _ in where(measured.figures(measured_tree))] == ["docs/benchmarks.md", "README.md"]


def test_a_table_without_its_markers_is_found(measured_tree):
    readme = measured_tree.root / "README.md"
    readme.write_text(readme.read_text().replace("<!-- end of figures -->", ""))
    assert where(measured.figures(measured_tree)) == [("README.md", 1)]


def test_a_mutant_whose_text_is_gone_or_not_alone_is_found(tree):
    t = tree({"base/a.cc": "int a = 1;\nint b = 1;\n"})
    mutants = [mutant_texts.run.components.m(name, "base/a.cc", old, "", "unit") for name, old in (("one", "int a"), ("two", "= 1;"), ("none", "int c"))]
    assert [o.what.split('"')[1] for o in mutant_texts.occur_once(t, mutants)] == ["two", "none"]


def test_a_mutant_or_control_in_a_header_that_is_not_compiled_with_it_is_found(tree):
    t = tree({path: "int a = 1;\n" for path in ("base/a.h", "base/a.cc", "pool/a.h")})
    m, control = mutant_texts.run.components.m, mutant_texts.controls.PROGRAM
    mutants = [m(killer, path, "= 1", "= 2", killer) for path in ("base/a.h", "base/a.cc", "pool/a.h") for killer in ("unit", control)]
    assert [(o.path, o.what.split('"')[1]) for o in mutant_texts.occur_once(t, mutants)] == [
        ("base/a.h", "unit"), ("base/a.h", control), ("pool/a.h", control)]


def test_a_number_of_mutants_that_the_documents_lack_is_found(tree):
    t = tree({"docs/m.md": "| `base/` | 2 | 1 |\n| `proxy/net/` | 1 | 0 |\n| `pool/` | 1 | 0 |\n"})
    m = mutant_texts.run.components.m
    mutants = [m("one", "base/a.cc", "a", "b", "unit"), m("two", "base/b.cc", "a", "b", "unit", "for a reason"), m("three", "proxy/net/x/a.cc", "a", "b", "unit"),
               m("four", "exec/a.cc", "a", "b", "unit")]
    assert [o.what.split(" ")[0] for o in mutant_texts.are_counted(t, mutants, "docs/m.md")] == ["exec/", "pool/"]
