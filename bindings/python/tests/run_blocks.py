"""Runs the Python blocks of Markdown files as printed: run_blocks.py README.md docs/python.md

A block with >>> prompts is a doctest; any other is a script. Blocks of a file share nothing. A block that imports what is not
installed is skipped by name."""

import doctest
import re
import sys
import traceback


def run(block: str, place: str) -> str:
    """ "" where the block did as it says, or what is wrong."""
    if ">>>" in block:
        test = doctest.DocTestParser().get_doctest(block, {}, place, place, 0)
        runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
        said = []
        runner.run(test, out=said.append)
        return "".join(said) if runner.failures else ""
    try:
        exec(compile(block, place, "exec"), {"__name__": "__main__"})
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] == "attn":
            raise
        print(f"skipped: {place} needs {error.name}")
    except Exception:  # noqa: BLE001
        return traceback.format_exc()
    return ""


def main() -> int:
    failures = blocks = 0
    for file in sys.argv[1:]:
        text = open(file, encoding="utf-8").read()
        for number, match in enumerate(re.finditer(r"^```python\n(.*?)^```", text, re.S | re.M), 1):
            blocks += 1
            wrong = run(match.group(1), f"{file}, Python block {number}")
            failures += bool(wrong)
            if wrong:
                print(f"FAILED: {file}, Python block {number}\n{wrong}")
    print(f"{blocks} Python blocks, {failures} failed")
    return 1 if failures or not blocks else 0


if __name__ == "__main__":
    sys.exit(main())
