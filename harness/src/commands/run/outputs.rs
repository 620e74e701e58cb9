//! Output files of `ctxbench run`: checked before the run, written after it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::commands::output::escape;
use anyhow::{Context, bail};
use ctxbench_os::shutdown::{self, TempFolder};
use ctxbench_replay::run::hues;
use ctxbench_reports as reports;
use ctxbench_reports::{Artifact, NewResults, StoredResults};
use ctxbench_scenarios::Scenario;
use ctxbench_util::calendar;

use super::RunArgs;
use super::rows::RunRows;
use crate::commands::otel::now_ms;
use crate::commands::{check_outputs, check_replaced, list};

/// Checks before the run that all outputs can be written and would not overwrite inputs.
pub(super) fn check(args: &RunArgs, read: &[Scenario]) -> anyhow::Result<()> {
    let named = args.inputs.iter().map(String::as_str);
    let named = named.map(PathBuf::from).filter(|p| p.exists());
    let inputs: Vec<PathBuf> = named.chain(read.iter().flat_map(|s| s.files.clone())).collect();
    let outputs = outputs(args);
    check_outputs(&outputs, &inputs)?;
    for (option, path) in &outputs {
        if reports::is_of_results(&args.out, path) {
            bail!("{option}: {} is a file of --out; name another file", path.display());
        }
        if *option == TRACE {
            check_replaced(option, path, "{\"seq\":")?;
        }
    }
    Ok(())
}

const TRACE: &str = "--trace";

/// Returns the files that a run writes in addition to its results, with their options.
fn outputs(args: &RunArgs) -> Vec<(&'static str, &Path)> {
    let cassette = args.cassette.as_ref().filter(|c| !c.offline).map(|c| ("--cassette", &*c.path));
    args.trace.as_deref().map(|path| (TRACE, path)).into_iter().chain(cassette).collect()
}

/// Writes the results, and `more` files in the same folder. From then on, a signal prints
/// `message`.
pub(in crate::commands) fn write(
    out: &Path,
    stored: &StoredResults<'_>,
    more: &[Artifact],
    private: bool,
    message: Option<String>,
) -> anyhow::Result<()> {
    let matrix = Artifact { file: "matrix.md".into(), text: list::matrix_markdown() };
    let more = [std::slice::from_ref(&matrix), more].concat();
    let mut new = None;
    let folder = TempFolder::create(|| {
        let created = NewResults::create(out)?;
        let path = created.path().to_path_buf();
        new = Some(created);
        Ok::<_, anyhow::Error>(path)
    })?;
    let new = new.context("the folder was created")?;
    new.fill(stored, &hues(), &list::matrix(), &more, private)?;
    folder.publish(|| new.publish())?;
    shutdown::set_message(message.map(|message| escape(&message)));
    Ok(())
}

/// Returns the text of `timings.json`, with the computation time of every row.
pub(super) fn timings(rows: &RunRows<'_>, total: Duration) -> anyhow::Result<String> {
    let (end, ms) = (calendar::iso(now_ms()), total.as_millis());
    let mut out = format!("{{\n  \"finished\": \"{end}\",\n  \"total_ms\": {ms},\n  \"pairs\": [");
    let mut first = true;
    for at in rows.order() {
        rows.session(at, &mut |row| {
            if !row.timing.is_null() {
                out += if first { "\n    " } else { ",\n    " };
                out += &row.timing.to_string();
                first = false;
            }
        })?;
    }
    Ok(out + "\n  ]\n}\n")
}

/// Returns the message for a signal that arrives after the results are written, but before the trace
/// is.
pub(super) fn unwritten(out: &Path, trace: &Path) -> String {
    format!(
        "Interrupted. The results are in {}; run the same command again to write --trace {}.",
        out.display(),
        trace.display()
    )
}
