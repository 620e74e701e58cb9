//! Strategies given on the command line, with settings from files of the products.

use std::path::{Component, Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use ctxbench_core::settings::Value;
use ctxbench_strategies::descriptor::SettingsFile;
use ctxbench_strategies::{Spec, SpecError, all};

use ctxbench_agents::exec;

/// Options that choose strategies.
#[derive(clap::Args)]
pub(super) struct Chosen {
    /// Strategy with settings, such as codex:auto_compact_limit=90000 (repeat; default: all). A
    /// list [60k,90k,50%] or a range 60k..180k/30k makes a row for each value. Quote a text with a
    /// comma: codex:compact_prompt="Note this, briefly" ("" is a quote in it). Your own program:
    /// NAME=exec:COMMAND or NAME=exec{k=v,…}:COMMAND (docs/exec.md)
    #[arg(long, value_name = "S[:k=v,…]")]
    pub(super) strategy: Vec<String>,
    /// Settings file of a product, such as opencode.jsonc or Codex's config.toml (repeat), for all
    /// its strategies; settings of --strategy take precedence
    #[arg(long, value_name = "FILE")]
    settings: Vec<PathBuf>,
}

impl Chosen {
    /// Returns whether a list or a range added strategies.
    pub(super) fn swept(&self, specs: &[Spec]) -> bool {
        !self.strategy.is_empty() && specs.len() > self.strategy.len()
    }

    /// Returns the exec strategies, as given by the user.
    pub(super) fn programs(&self) -> Vec<String> {
        self.strategy.iter().filter(|s| exec::is_exec(s)).cloned().collect()
    }

    /// Returns the selected strategies with their settings; by default, all strategies. A list or a
    /// range also adds the strategy without settings, to compare its values with.
    pub(super) fn specs(&self) -> anyhow::Result<Vec<Spec>> {
        let mut specs = Spec::defaults();
        if !self.strategy.is_empty() {
            let named = self.strategy.iter().map(|s| rows(s)).collect::<Result<Vec<_>, _>>()?;
            let mut today: Vec<Spec> = Vec::new();
            for (text, _) in self.strategy.iter().zip(&named).filter(|(_, rows)| rows.len() > 1) {
                let head = text.split(':').next().unwrap_or(text);
                today.extend(parse_one(head).ok().filter(|_| !exec::is_exec(text)));
            }
            specs = named.concat();
            for spec in today {
                if specs.iter().all(|s| s.label() != spec.label()) {
                    specs.insert(0, spec);
                }
            }
        }
        fill(&mut specs, &self.settings, "--strategy")?;
        Ok(specs)
    }
}

/// Parses a strategy, which is built in or a program. A list or a range of values gives one
/// strategy for each value.
pub(super) fn rows(text: &str) -> Result<Vec<Spec>, SpecError> {
    if !exec::is_exec(text) {
        return Spec::sweep(text);
    }
    ctxbench_os::shutdown::exit_on_signals();
    exec::parse(text)
}

/// Adds a row for each strategy and filter, a program that changes tool results.
pub(super) fn add_filtered(specs: &mut Vec<Spec>, filters: &[String]) -> anyhow::Result<()> {
    let plain = specs.clone();
    for text in filters {
        if !exec::is_exec(text) {
            bail!("--filter: `{text}` is not a program; write NAME=exec:COMMAND");
        }
        for filter in rows(text)? {
            if filter.settings.explicit().any(|(_, value)| matches!(value, Value::OfWindow(_))) {
                bail!("--filter: `{text}`: a filter cannot use a share of the window; give tokens");
            }
            specs.extend(plain.iter().map(|base| exec::with_filter(base, &filter)));
        }
    }
    Ok(())
}

/// Parses a single strategy.
pub(super) fn parse_one(text: &str) -> Result<Spec, SpecError> {
    match exec::is_exec(text) {
        false => Spec::parse(text),
        true => match rows(text)?.as_slice() {
            [parse_spec] => Ok(parse_spec.clone()),
            many => {
                let rows = many.len();
                let why = format!("`{text}` makes {rows} rows, and one strategy is wanted here");
                Err(SpecError::Program(why))
            }
        },
    }
}

/// Applies settings files of products to the strategies. `option` is the option that selects
/// strategies, for error messages.
pub(super) fn fill(specs: &mut [Spec], files: &[PathBuf], option: &str) -> anyhow::Result<()> {
    for file in files {
        let text = ctxbench_util::files::read_text(file)
            .with_context(|| format!("--settings: cannot read {}", file.display()))?;
        let product = product_of(file, specs, option)?;
        // Windows editors write a byte order mark.
        let text = text.trim_start_matches('\u{feff}');
        let wrong = |e| anyhow!("--settings: {}: {e}", file.display());
        let mut used = false;
        for spec in specs.iter_mut().filter(|s| s.descriptor.name == product) {
            *spec = spec.clone().with_file(text).map_err(wrong)?;
            used = true;
        }
        if !used {
            bail!(
                "--settings: {} is of {product}, and no strategy of it is asked for; add \
                 {option} {product}",
                file.display()
            );
        }
    }
    Ok(())
}

/// Returns the product of a settings file, judging by the end of its name. If several products have
/// files of this name, the folder of the file decides, and then the selected strategies.
fn product_of(file: &Path, specs: &[Spec], option: &str) -> anyhow::Result<&'static str> {
    let known: Vec<_> = all().filter_map(|d| Some((d.name, d.settings_file.as_ref()?))).collect();
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let called = |f: &SettingsFile| f.names.iter().any(|end| name.ends_with(end));
    let mut alike: Vec<_> = known.iter().filter(|(_, f)| called(f)).collect();
    let folders: Vec<_> = file.components().map(Component::as_os_str).collect();
    let place = |f: &SettingsFile| folders.iter().rposition(|c| *c == f.folder);
    let nearest = alike.iter().filter_map(|(_, f)| place(f)).max();
    if nearest.is_some() {
        alike.retain(|(_, f)| place(f) == nearest);
    } else if alike.len() > 1 {
        alike.retain(|(product, _)| specs.iter().any(|s| s.descriptor.name == *product));
    }
    if let [(product, _)] = alike[..] {
        return Ok(product);
    }
    let of = |(product, f): &(&str, &SettingsFile)| {
        let names: Vec<String> = f.names.iter().map(|n| format!("{}/{n}", f.folder)).collect();
        format!("{} ({product})", names.join(", "))
    };
    let known: Vec<String> = known.iter().map(of).collect();
    bail!(
        "--settings: {}: the name does not tell the product; expected a name like {}; rename the \
         file, or, if several products share its name, add {option} with one of them",
        file.display(),
        known.join(" or ")
    )
}
