//! Writes the cases of `--record`, and replays them with the strategies here.

use std::path::{Path, PathBuf};

use anyhow::Context;
use ctxbench_scenarios::Scenario;

use ctxbench_agents::drive::Driven;
use ctxbench_agents::drive::record::RecordError;
use ctxbench_conform::shorten;

/// Cases written to a folder.
pub(super) struct Cases {
    folder: PathBuf,
    /// Number of cases that were recorded, also in vain.
    all: usize,
    /// Number of cases that differ or could not be written.
    wrong: usize,
}

impl Cases {
    pub(super) fn in_folder(folder: &Path) -> anyhow::Result<Cases> {
        let name = || format!("--record {}: cannot be made a folder", folder.display());
        std::fs::create_dir_all(folder).with_context(name)?;
        Ok(Cases { folder: folder.to_path_buf(), all: 0, wrong: 0 })
    }

    /// Writes the case of a session and prints the outcome.
    pub(super) fn take(&mut self, session: &Scenario, driven: &Driven) {
        let written = match driven.record(&session.id, &self.folder) {
            Ok(written) => written,
            Err(e) => {
                let failed = usize::from(!matches!(e, RecordError::Impossible(_)));
                self.all += failed;
                self.wrong += failed;
                report!("note: --record: {e}");
                return;
            }
        };
        self.all += 1;
        let (path, verdict) = (written.path.display(), &written.verdict);
        let (matched, expected) = (verdict.matched, verdict.expected);
        report!("note: {path}: {matched} of {expected} requests are ours, {} bytes", written.bytes);
        if let Some(d) = &verdict.difference {
            self.wrong += 1;
            let item = d.item.map_or(String::new(), |i| format!(", item {i}"));
            let (theirs, ours) = shorten(&d.expected, &d.got);
            report!("  request {}{item}: {}\n  - {theirs}\n  + {ours}", d.request, d.what);
        }
    }

    /// Returns an error message, or `None` if all cases agree.
    pub(super) fn differ(self) -> Option<String> {
        let Cases { folder, all, wrong } = self;
        let told = || {
            format!(
                "{wrong} of {all} recorded cases differ from our implementation: `ctxbench conform \
                 {}` shows where",
                folder.display()
            )
        };
        (wrong > 0).then(told)
    }
}
