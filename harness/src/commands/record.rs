//! `ctxbench record`: records the traffic between an agent and its provider.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, anyhow, bail};
use ctxbench_scenarios::formats::exchanges::{Header, VERSION};
use ctxbench_util::calendar;

use ctxbench_agents::drive;
use ctxbench_agents::recorder::{self, Recorder, RecordingFile, Upstreams};
use ctxbench_agents::serve::wall_clock;
use ctxbench_os::Signals;
use ctxbench_os::server_url::ServerUrl;
use ctxbench_util::plural::pluralize;

#[derive(clap::Args)]
pub(crate) struct RecordArgs {
    /// File for the recording; an existing file is not replaced
    #[arg(short, long, value_name = "FILE")]
    out: PathBuf,
    /// Agent that defines how to pass the address: a name known to `drive`, or a TOML file with a
    /// [record] table; see docs/record.md
    #[arg(long, value_name = "NAME|FILE", conflicts_with = "env")]
    agent: Option<String>,
    /// Environment variable for the address (repeat): NAME, or NAME=TEXT with {url} in it [default:
    /// those of the official SDKs]
    #[arg(long, value_name = "NAME[=TEXT]")]
    env: Vec<String>,
    /// URL that receives the requests [default: the provider of the request's API, or the previous
    /// value of the variable]
    #[arg(long, value_name = "URL")]
    upstream: Option<String>,
    /// Port on 127.0.0.1; 0 = any free port
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Remove keys, tokens, passwords, mail addresses and names of home folders from prompts and
    /// replies
    #[arg(long)]
    redact: bool,
    /// Print only errors on standard error
    #[arg(short, long)]
    quiet: bool,
    /// Program to record, with its arguments [default: record other programs until Ctrl-C]
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub(crate) fn record(args: &RecordArgs) -> anyhow::Result<ExitCode> {
    let agent = args.agent.as_deref().map(drive::agent::find).transpose()?;
    let upstreams = match &args.upstream {
        Some(url) => Upstreams::single(ServerUrl::parse(url).context("--upstream")?),
        None => Upstreams::of_providers(|name| std::env::var(name).ok()).map_err(|e| anyhow!(e))?,
    };
    for upstream in upstreams.all().filter(|u| !u.is_private()) {
        report!("note: keys travel to {} over http, where others can read them", upstream.host());
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let header = Header {
        version: VERSION,
        started: calendar::iso(u64::try_from(now.as_millis()).unwrap_or_default()),
        program: args.command.first().map(file_name),
        redacted: args.redact,
    };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let (outcome, recording) = runtime.block_on(async {
        let bound = Recorder::bind(args.port, upstreams, &args.out, header, wall_clock()).await;
        let recorder = bound.map_err(|e| refused(args, &e))?;
        let recording = recorder.recording();
        let ran = match start(args, agent.as_ref(), &recorder.url()) {
            Ok(Some(program)) => with_program(args, recorder, program).await,
            Ok(None) => by_hand(recorder).await,
            Err(e) => Err(e),
        };
        anyhow::Ok((ran, recording))
    })?;
    // This ends the requests in flight. They are recorded as unfinished.
    drop(runtime);
    if let Err(e) = &outcome {
        if recording.outcome().0 == 0 {
            let _ = std::fs::remove_file(&args.out);
        }
        return Err(anyhow!("{e:#}"));
    }
    tell_end(args, &recording)?;
    outcome.map(ExitCode::from)
}

fn file_name(program: &OsString) -> String {
    let name = Path::new(program).file_name().unwrap_or(program);
    name.to_string_lossy().into_owned()
}

fn refused(args: &RecordArgs, e: &std::io::Error) -> anyhow::Error {
    let out = args.out.display();
    if e.kind() == std::io::ErrorKind::AlreadyExists {
        let why = "is there already, and recordings replace nothing; name another file";
        return anyhow!("--out: {out} {why}");
    }
    let advice = "check that its folder exists and may be written to, and that --port is free";
    anyhow!("cannot record into {out}: {e}; {advice}")
}

/// Returns the program to start, with the proxy's address. `None` if the user starts the programs.
fn start(
    args: &RecordArgs,
    agent: Option<&drive::agent::Agent>,
    url: &str,
) -> anyhow::Result<Option<Command>> {
    let mut environment = BTreeMap::new();
    let mut arguments: Vec<OsString> = Vec::new();
    if let Some(agent) = agent {
        let told = agent.recorded(url).ok_or_else(|| {
            anyhow!(
                "--agent {}: its description does not say how it is told an address; give --env \
                 NAME, or a [record] table in a TOML file of your own",
                agent.name
            )
        })?;
        environment.extend(told.env);
        arguments.extend(told.arguments.into_iter().map(OsString::from));
    } else if args.env.is_empty() {
        let all = recorder::variables(url).into_iter();
        environment.extend(all.map(|(name, value)| (name.to_string(), value)));
    }
    for given in &args.env {
        let (name, value) = variable(given, url)?;
        environment.insert(name, value);
    }
    // Requests to loopback must not pass through another proxy.
    for name in ["NO_PROXY", "no_proxy"] {
        let others = std::env::var(name).unwrap_or_default();
        let local = "127.0.0.1,localhost";
        let all = if others.is_empty() { local.into() } else { format!("{others},{local}") };
        environment.insert(name.into(), all);
    }
    let (name, own) = match (args.command.split_first(), agent) {
        (Some((name, own)), _) => (name.clone(), own.to_vec()),
        (None, Some(agent)) => (agent.locate(None)?.into_os_string(), Vec::new()),
        (None, None) => return Ok(None),
    };
    let mut program = Command::new(name);
    program.args(arguments).args(own).envs(environment);
    Ok(Some(program))
}

/// Parses an environment variable: `NAME`, or `NAME=TEXT` with `{url}` in the text.
fn variable(given: &str, url: &str) -> anyhow::Result<(String, String)> {
    let (name, text) = match given.split_once('=') {
        Some((name, text)) if text.contains("{url}") => (name, text.replace("{url}", url)),
        Some((name, _)) => {
            bail!("--env {name}=…: expected {{url}} in it, such as {name}={{url}}/v1")
        }
        None => {
            let known = recorder::variables(url).into_iter().find(|(name, _)| *name == given);
            (given, known.map_or_else(|| url.to_string(), |(_, value)| value))
        }
    };
    let letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(letter) {
        bail!("--env {name:?}: expected the name of an environment variable");
    }
    Ok((name.to_string(), text))
}

async fn with_program(
    args: &RecordArgs,
    recorder: Recorder,
    program: Command,
) -> anyhow::Result<u8> {
    if !args.quiet {
        report!("recording through {} into {}", recorder.url(), args.out.display());
    }
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let passing = tokio::spawn(recorder.run(async move { drop(ended.await) }));
    let name = program.get_program().to_string_lossy().into_owned();
    let ran = recorder::run(program).await;
    drop(end);
    passing.await.context("the recorder")?;
    ran.with_context(|| format!("{name} cannot be started"))
}

async fn by_hand(recorder: Recorder) -> anyhow::Result<u8> {
    let signals = Signals::listen();
    super::print(&format!("listening on {}", recorder.url()))?;
    recorder.run(signals.wait()).await;
    Ok(0)
}

fn tell_end(args: &RecordArgs, recording: &RecordingFile) -> anyhow::Result<()> {
    let (exchanges, failed) = recording.outcome();
    let out = args.out.display();
    if let Some(why) = failed {
        bail!("{out} is not whole: {why}");
    }
    if !args.quiet {
        match exchanges {
            0 => report!(
                "no request came through; does the program read one of the variables? (--env, \
                 --agent; see docs/record.md)"
            ),
            n => report!("{} in {out}; replay with: ctxbench run {out}", pluralize(n, "request")),
        }
    }
    Ok(())
}
