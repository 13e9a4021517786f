"""Small files, short functions. Generated or vendored text has no place in the tree, so nothing is exempt by kind."""
import lizard

from tree import Offence

FILE_LINES, TEST_FILE_LINES = 400, 500  # tests hold tables of cases
FUNCTION_LINES, TEST_FUNCTION_LINES = 40, 100


def file_length(tree):
    for path in tree.with_suffix(".h", ".cc", ".py", ".cmake"):
        count, most = len(tree.lines(path)), TEST_FILE_LINES if path.startswith("tests/") else FILE_LINES
        if count > most:
            yield Offence(path, 1, "%d lines, at most %d" % (count, most))


def function_length(tree):
    for path in tree.with_suffix(".h", ".cc", ".py"):
        most = TEST_FUNCTION_LINES if path.startswith("tests/") else FUNCTION_LINES
        for function in lizard.analyze_file(str(tree.root / path)).function_list:
            if function.length > most:
                yield Offence(path, function.start_line, "%s has %d lines, at most %d" % (function.name, function.length, most))
