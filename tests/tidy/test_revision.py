"""cmake/write_revision.cmake names the commit of a tree with git, of an archive that git made, and of an image's context."""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

CMAKE = pathlib.Path(__file__).resolve().parents[2] / "cmake"
NAMES = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@a.test", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@a.test"}


def git(folder, *words):
    return subprocess.run(["git", "-C", folder, *words], env={**os.environ, **NAMES}, capture_output=True, check=True).stdout


def revision(source, tmp_path, **env):
    """Returns what revision() says, or the message of the error."""
    output = tmp_path / "revision.cc"
    done = subprocess.run(["cmake", "-DSOURCE=%s" % source, "-DVERSION=1.2.3", "-DOUTPUT=%s" % output, "-P", CMAKE / "write_revision.cmake"],
                          env={**os.environ, **env}, capture_output=True, text=True)
    return re.search(r'return "(.*)";', output.read_text()).group(1) if done.returncode == 0 else done.stderr


@pytest.fixture
def source(tmp_path):
    """A tree with one commit."""
    made = tmp_path / "source"
    (made / "cmake").mkdir(parents=True)
    shutil.copy(CMAKE / "revision.txt", made / "cmake")
    shutil.copy(CMAKE.parent / ".gitattributes", made)
    git(made, "init", "-q")
    git(made, "add", "-A")
    git(made, "commit", "-qm", "one")
    return made


def archive(source, tmp_path):
    unpacked = tmp_path / "archive"
    unpacked.mkdir()
    subprocess.run(["tar", "-x", "-C", unpacked], input=git(source, "archive", "HEAD"), check=True)
    return unpacked


def test_a_tree_without_a_tag_is_named_by_its_commit(source, tmp_path):
    commit = git(source, "rev-parse", "HEAD").decode().strip()
    assert revision(source, tmp_path) == commit[:12]
    assert commit.startswith(revision(archive(source, tmp_path), tmp_path)) and revision(tmp_path / "archive", tmp_path)


def test_a_tree_after_a_tag_names_both(source, tmp_path):
    git(source, "tag", "v1.2.3")
    assert revision(source, tmp_path) == "v1.2.3"
    git(source, "commit", "-qm", "two", "--allow-empty")
    assert re.fullmatch(r"v1\.2\.3-1-g[0-9a-f]{12}", revision(source, tmp_path))
    assert revision(archive(source, tmp_path), tmp_path) == revision(source, tmp_path)


def test_a_changed_tree_says_so(source, tmp_path):
    (source / "cmake/revision.txt").write_text("changed\n")
    assert revision(source, tmp_path).endswith("-dirty")


def test_the_tag_of_another_release_ends_the_build(source, tmp_path):
    git(source, "tag", "v1.2.4")
    assert "the tag is v1.2.4" in revision(source, tmp_path)


def test_without_git_the_environment_names_it_or_it_has_no_name(source, tmp_path):
    shutil.rmtree(source / ".git")
    assert revision(source, tmp_path) == ""
    assert revision(source, tmp_path, CARPOOL_REVISION="v9-1-gabc") == "v9-1-gabc"
