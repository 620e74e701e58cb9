//! `ctxbench serve`: a mock model server on loopback.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, bail};
use ctxbench_agents::serve::{FaultPlan, ReplyScript, ServeOptions, Server};
use ctxbench_os::Signals;
use ctxbench_util::files;

#[derive(clap::Args)]
pub(crate) struct ServeArgs {
    /// Port on 127.0.0.1; 0 = any free port
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Session, recording or scenario with the replies (default: replies describe the request)
    #[arg(long, value_hint = clap::ValueHint::AnyPath)]
    script: Option<String>,
    /// Context window of every model in tokens (default: the model's)
    #[arg(long, value_parser = super::values::tokens)]
    window: Option<u64>,
    /// Append a JSON line per request to this file
    #[arg(long)]
    log: Option<PathBuf>,
    /// Write texts into the log without cutting them
    #[arg(long, requires = "log")]
    log_texts: bool,
    /// Fault of a request, by its number: `3:500`, `2-4:429;retry-after=1`, `5:cut=3`,
    /// `6:slow=2000`, `7:overflow`
    #[arg(long, value_name = "N:FAULT")]
    fault: Vec<FaultPlan>,
}

pub(crate) fn serve(args: ServeArgs) -> anyhow::Result<()> {
    let log = match &args.log {
        None => None,
        Some(path) => {
            let script = args.script.iter().map(PathBuf::from).filter(|p| p.exists());
            files::check_output(path, &script.collect::<Vec<_>>()).context("--log")?;
            super::check_not_session("--log", path)?;
            super::private::keep(args.script.iter().map(PathBuf::from).filter(|p| p.exists()));
            let file = File::options()
                .create(true)
                .append(true)
                .open(path)
                .with_context(|| format!("--log {}", path.display()))?;
            Some(Box::new(file) as Box<dyn Write + Send>)
        }
    };
    let options = ServeOptions {
        port: args.port,
        speaker: args.script.as_deref().map(script).transpose()?.map(|s| Box::new(s) as _),
        faults: args.fault,
        window: args.window,
        log,
        log_texts: args.log_texts,
        ..ServeOptions::default()
    };
    // One thread can read and count a large body while others answer requests.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let server = Server::bind(options)
            .await
            .with_context(|| format!("cannot listen on 127.0.0.1:{}", args.port))?;
        // Catch signals before printing the address, because a program that reads the address may
        // stop the server at once.
        let signals = Signals::listen();
        super::print(&format!("listening on http://{}", server.address()))?;
        server.run(signals.wait()).await;
        Ok(())
    })
}

fn script(name: &str) -> anyhow::Result<ReplyScript> {
    let script = ReplyScript::new(&super::load_one("--script", name)?.session);
    if script.is_empty() {
        bail!("--script {name}: the session has no replies");
    }
    Ok(script)
}
