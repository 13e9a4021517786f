"""Programs that a step needs and the machine may lack: from the path, from build/tools, or built with Go in bounded
time. Downloads happen by name and through Go's own client only."""
import os
import shutil
import subprocess

from shell import ROOT, TooLate

FOLDER = ROOT / "build" / "tools"
MADE_WITH_GO = {
    "helm": "helm.sh/helm/v3/cmd/helm@latest",
    "kubeconform": "github.com/yannh/kubeconform/cmd/kubeconform@latest",
    "h2spec": "github.com/summerwind/h2spec/cmd/h2spec@latest",
}


def have(name):
    """Returns its path, or None."""
    mine = FOLDER / name
    return str(mine) if os.access(mine, os.X_OK) else shutil.which(name)


def get(log, name, seconds=420):
    """Returns (path, ""), or (None, the reason)."""
    path = have(name)
    if path or name not in MADE_WITH_GO:
        return path, "" if path else name + " is not installed"
    if not shutil.which("go"):
        return None, "%s is not installed, and there is no Go to make it" % name
    FOLDER.mkdir(parents=True, exist_ok=True)
    try:
        status = log.run("nice", "go", "install", MADE_WITH_GO[name], limit=seconds, env={"GOBIN": str(FOLDER)})
    except TooLate as late:
        return None, str(late)
    return (have(name), "") if status == 0 else (None, "%s could not be made" % name)


def output(*argv, **more):
    """Returns a command's output; stderr becomes the error."""
    done = subprocess.run([str(a) for a in argv], cwd=ROOT, capture_output=True, text=True, **more)
    if done.returncode:
        raise RuntimeError("%s: %s" % (" ".join(map(str, argv[:3])), (done.stderr or done.stdout).strip()[-800:]))
    return done.stdout
