//! `--goals`: what the rows of a run or of results are held to.

use anyhow::Context;
use ctxbench_reports::goals::{self, DOCUMENTS};
use ctxbench_reports::record::{Goal, Results};

/// The goals of a file, or those inside the program.
pub(super) fn named(name: &str) -> anyhow::Result<Vec<Goal>> {
    if name == DOCUMENTS {
        return Ok(goals::documents()?);
    }
    let text = ctxbench_core::files::read_text(name.as_ref()).with_context(|| {
        format!("--goals: cannot read {name}; give a file, or `{DOCUMENTS}` for those of docs/")
    })?;
    Ok(goals::read(name, &text)?)
}

/// Says on standard error which goals no session of the results is about.
pub(super) fn tell_unheld(results: &Results) {
    let missing = goals::standing(results).without_session;
    if !missing.is_empty() {
        tell!("note: no session here is what these goals are about: {}", missing.join(", "));
    }
}

/// Fails where a product misses a goal, or where there was nothing to miss.
pub(super) fn must_pass(results: &Results) -> anyhow::Result<()> {
    let standing = goals::standing(results);
    if !standing.failed.is_empty() {
        return Err(super::CheckFailed(standing.failed.join("\n")).into());
    }
    if standing.passed == 0 {
        let none = "--goals-must-pass judged nothing: no product has the figures of a goal on a \
                    session that it is about";
        return Err(super::CheckFailed(none.into()).into());
    }
    tell!("all {} goals that could be judged were reached", standing.passed);
    Ok(())
}
