"""A tiny runner: checks are functions, each prints its name when it holds."""

import sys
import traceback


def run(checks):
    failed = 0
    for check in checks:
        try:
            check()
            print(f"ok {check.__name__}")
        except Exception:
            failed += 1
            print(f"FAILED {check.__name__}")
            traceback.print_exc(file=sys.stdout)
    print(f"{len(checks) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


def raises(kind, call):
    """The exception of that class which a call raises."""
    try:
        call()
    except kind as e:
        assert type(e) is kind, f"{type(e)} instead of {kind}"
        return e
    raise AssertionError(f"nothing raised, expected {kind}")


def fault(words):
    return {"x-ctxbench-fault": words}
