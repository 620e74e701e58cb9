//! The options `--summarizer` and `--cassette`.

use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use anyhow::{Context, bail};
use ctxbench_mock::summarise::Summariser;
use ctxbench_mock::summarise::endpoint::{Address, Cassette, Endpoint, Key};

/// Value of `--cassette`: `FILE`, or `offline:FILE` to never send requests to the server.
#[derive(Clone, Debug)]
pub(super) struct CassetteFile {
    pub(super) path: PathBuf,
    pub(super) offline: bool,
}

impl FromStr for CassetteFile {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<CassetteFile, Infallible> {
        let path = text.strip_prefix("offline:");
        Ok(CassetteFile { path: path.unwrap_or(text).into(), offline: path.is_some() })
    }
}

/// Options of a command with one summarizer.
#[derive(clap::Args)]
pub(super) struct OneSummarizer {
    /// Summarizer, as for `run`
    #[arg(long, value_name = "KIND", default_value = "extractive")]
    summarizer: String,
    /// File with the answers of a summarizer's server, as for `run`
    #[arg(long, value_name = "[offline:]FILE")]
    cassette: Option<CassetteFile>,
}

impl OneSummarizer {
    pub(super) fn summariser(&self) -> anyhow::Result<Summariser> {
        let name = std::slice::from_ref(&self.summarizer);
        Ok(summarisers(name, self.cassette.as_ref())?.swap_remove(0))
    }
}

/// Parses the summarizers of a run. Repeating one is an error.
pub(super) fn summarisers(
    names: &[String],
    cassette: Option<&CassetteFile>,
) -> anyhow::Result<Vec<Summariser>> {
    let endpoints = names.iter().any(|n| n.contains("://"));
    let cassette = match cassette {
        Some(_) if !endpoints => bail!("--cassette needs a --summarizer that is a URL"),
        None if endpoints => bail!(
            "--summarizer with a URL needs --cassette FILE, in which every answer is recorded once"
        ),
        Some(file) => Some(Arc::new(Cassette::open(&file.path, file.offline)?)),
        None => None,
    };
    let mut out: Vec<Summariser> = Vec::new();
    for name in names {
        let one = match &cassette {
            Some(cassette) if name.contains("://") => {
                let address = Address::parse(name).context("--summarizer")?;
                let endpoint = Endpoint::new(address, Key::from_environment(), cassette.clone());
                Summariser::Endpoint(Arc::new(endpoint.context("--summarizer")?))
            }
            _ => name.parse().map_err(|e| anyhow::anyhow!("--summarizer: {e}"))?,
        };
        if out.iter().any(|o| o.name() == one.name()) {
            bail!("--summarizer: `{}` is given twice; remove one", one.name());
        }
        out.push(one);
    }
    Ok(out)
}
