"""A mutant's texts are whole expressions or whole statements, and a mutant that does not compile is named."""
import subprocess

import pytest

import mutant_texts
from test_tidy import tree  # noqa: F401: a fixture

choice, m = mutant_texts.choice, mutant_texts.run.components.m
SOURCE = """int f(int a, int b) {
  // A comment; it is no statement
  if (a == 1) return 7;
  const int sum = a + g("(;", '(') && h(b);
  if (b) {
    return sum == 2 &&
           a == b;
  }
  return places.invalid(a) ? b : S{a}.b;
}
"""
PARTS = [("return sum ==", "return a =="), ("return sum == 2 &&", "return true &&"), ("(b) {", "(a) {"), (") return 7;", ") return 8;"),
         ("if (a == 1)", "if (a == 2)"), ("a + g(\"(;\", '(')", "a +"), ("a + g(\"(;\", '(')", "a; b"), ("h(b)", ""), ("h(b)", "&& b"),
         ("places.invalid", "places.valid"), (".invalid(a)", ".valid(a)"), ("invalid(a)", "valid(a)"), (": S{a}", ": S{}"), ("S{a}", "S{}"),
         ("a == b", "a == (b"), ("a == b;", "true;"), ("return 7;", "return 8"), ("return 7;", "else return 8;"), ("S{a}.b", "{}"),
         ("return sum == 2 &&\n           a == b;\n  }", "}")]
WHOLES = [("return 7;", "return 8;"), ("return 7;", ""), ("a + g(\"(;\", '(')", "a--"), ("if (a == 1) return 7;", "if (a == 2) return 7;"),
          ("a == 1", "!a"), ("h(b)", "[] { return 1; }()"), ("places.invalid(a)", "::valid(a)"), ("S{a}.b", "S{}.b"),
          ("  if (b) {\n    return sum == 2 &&\n           a == b;\n  }\n", "")]


@pytest.mark.parametrize("old, new", PARTS)
def test_a_part_of_a_statement_or_of_an_expression_is_found(tree, old, new):  # noqa: F811
    table = [m("it", "base/a.cc", old, new, "unit")]
    assert [o.path for o in mutant_texts.are_whole(tree({"base/a.cc": SOURCE}), table)] == ["base/a.cc"]


@pytest.mark.parametrize("old, new", WHOLES)
def test_whole_expressions_and_whole_statements_are_accepted(tree, old, new):  # noqa: F811
    assert [o.what for o in mutant_texts.are_whole(tree({"base/a.cc": SOURCE}), [m("it", "base/a.cc", old, new, "unit")])] == []


def test_texts_that_overlap_are_judged_together(tree):  # noqa: F811
    t = tree({"base/a.cc": "void f() {\n  if (a) b = c;\n}\n"})
    part, whole = m("part", "base/a.cc", "if (a)", "", "unit"), m("whole", "base/a.cc", "if (a) b = c;", "", "unit")
    assert [o.line for o in mutant_texts.are_whole(t, [part])] == [2]
    assert [o.what for o in mutant_texts.are_whole(t, [part, whole])] == []


def test_a_mutant_that_does_not_compile_is_named(tmp_path):
    mutants = [(4, m("the good one", "a.cc", "a + 1", "a", "unit")), (5, m("the bad one", "a.cc", "b + 1", "nothing", "unit")),
               (6, m("another bad one", "a.cc", "return a;", "int i = 0;\nreturn missing;", "unit"))]
    (tmp_path / "a.cc").write_text(choice.mutated("a.cc", "int f(int a, int b) {\n  a = a + 1, b = b + 1;\n  return a;\n}\n", mutants))
    (tmp_path / "choice.h").write_text(choice.HEADER)
    done = subprocess.run(["c++", "-std=c++20", "-fsyntax-only", "-include", "choice.h", "a.cc"], cwd=tmp_path, text=True, capture_output=True)
    lines = choice.explained(tmp_path, done.stderr, mutants).splitlines()
    assert [line.split('"')[1] for line in lines if line.startswith("the mutant ")] == ["the bad one", "another bad one"]
    assert "nothing" in lines[0] and "missing" in lines[1]
