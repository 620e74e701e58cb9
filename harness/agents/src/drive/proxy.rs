//! A program between an agent and its model, such as one that shortens prompts.

use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use ctxbench_os::PipedProcess;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;
use tokio::time::sleep;

use super::template::replace;

/// Interval between two attempts to connect.
const POLL: Duration = Duration::from_millis(50);
const STDERR_LINES: usize = 6;
const BUFFER_BYTES: usize = 4_096;

/// A proxy as the user describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proxy {
    /// Name, which the row of the agent ends with.
    pub name: String,
    /// Program and arguments, with `{port}` and `{upstream}`.
    command: Vec<String>,
}

impl FromStr for Proxy {
    type Err = String;

    /// Parses `NAME=exec:COMMAND`.
    fn from_str(text: &str) -> Result<Proxy, String> {
        let expected = "expected NAME=exec:COMMAND, NAME of letters, digits, `-`, `_` and `.`, with \
                        {port} and {upstream} in the command";
        let (name, command) = text.split_once("=exec:").ok_or(expected)?;
        let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let command_parts = shlex::split(command).filter(|parts| !parts.is_empty());
        let is_complete = ["{port}", "{upstream}"].iter().all(|place| command.contains(place));
        if name.is_empty() || !name.chars().all(letter) || !is_complete {
            return Err(expected.into());
        }
        Ok(Proxy { name: name.into(), command: command_parts.ok_or(expected)? })
    }
}

/// A proxy that listens.
pub(super) struct RunningProxy {
    name: String,
    process: PipedProcess,
    pub(super) address: SocketAddr,
}

impl RunningProxy {
    /// Starts a proxy in front of the model at the address `upstream`. Fails if it does not listen
    /// within `limit`.
    pub(super) async fn start(
        proxy: &Proxy,
        upstream: SocketAddr,
        limit: Duration,
    ) -> Result<RunningProxy, String> {
        let name = &proxy.name;
        let failed = |e: std::io::Error| format!("the proxy {name} cannot be started: {e}");
        // The port is free again when the listener is dropped.
        let free = TcpListener::bind("127.0.0.1:0").await.and_then(|l| l.local_addr());
        let address = free.map_err(failed)?;
        let (port, upstream) = (address.port(), format!("http://{upstream}"));
        let fill = |part: &String| {
            replace(&replace(part, "port", &port.to_string()), "upstream", &upstream)
        };
        let parts: Vec<String> = proxy.command.iter().map(fill).collect();
        let process = PipedProcess::spawn(Command::new(&parts[0]).args(&parts[1..]));
        let process = process.map_err(failed)?;
        let mut running = RunningProxy { name: name.clone(), process, address };
        let listens = async {
            while TcpStream::connect(address).await.is_err() {
                sleep(POLL).await;
            }
        };
        tokio::select! {
            () = listens => Ok(()),
            why = running.ended() => Err(why),
            () = sleep(limit) => Err(format!("the proxy {name} does not listen on port {port}; --timeout waits longer")),
        }
        .map(|()| running)
    }

    /// Reads its output until the process ends, and returns the reason.
    pub(super) async fn ended(&mut self) -> String {
        let mut bytes = [0; BUFFER_BYTES];
        while matches!(self.process.stdout.read(&mut bytes).await, Ok(1..)) {}
        let status = self.process.group.wait().await;
        let status = status.map_or_else(|e| e.to_string(), |status| status.to_string());
        let last = self.process.stop(STDERR_LINES).await;
        let output = if last.is_empty() { last } else { format!("; standard error:\n{last}") };
        format!("the proxy {} ended with {status}{output}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_needs_a_name_and_both_places() {
        let parsed: Proxy =
            "short=exec:python3 'my proxy.py' {port} {upstream}/v1".parse().unwrap();
        assert_eq!(parsed.name, "short");
        assert_eq!(parsed.command, ["python3", "my proxy.py", "{port}", "{upstream}/v1"]);
        for text in ["short", "=exec:p {port} {upstream}", "a b=exec:p {port} {upstream}"] {
            assert!(text.parse::<Proxy>().is_err(), "{text}");
        }
        for text in ["p=exec:p {port}", "p=exec:p {upstream}", "p=exec:p '{port} {upstream}"] {
            assert!(text.parse::<Proxy>().unwrap_err().contains("NAME=exec:COMMAND"), "{text}");
        }
    }
}
