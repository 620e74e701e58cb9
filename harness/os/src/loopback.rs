//! Programs without a network: a user and network namespace of Linux with loopback only.
//!
//! `unshare` starts this program again in new namespaces. There, [`enter`] raises loopback, opens
//! the port of a server, sends that socket to the first process and becomes the other program. The
//! first process relays connections to the server.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::OnceLock;

use rustix::cmsg_space;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketType, recv, recvmsg, sendmsg, sendto, socket,
};
use rustix::process::{Signal, set_parent_process_death_signal};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener as Listener, TcpStream, UnixListener};
use tokio::task::JoinHandle;

/// First argument with which a program calls [`enter`].
pub const ENTER: &str = "__loopback";
/// Output of [`enter`] without a command, which shows that the system allows namespaces.
const READY: &str = "loopback only";
/// Socket in the folder of a program, as seen from the folder `project` in it.
const SOCKET: &str = "network";

/// Command line that starts this program in new namespaces. The user stays the same.
const UNSHARE: [&str; 5] = ["unshare", "--user", "--map-current-user", "--keep-caps", "--net"];

/// Returns why programs cannot run without a network here. Tries it once.
pub fn check() -> Result<(), String> {
    static CHECKED: OnceLock<Result<(), String>> = OnceLock::new();
    CHECKED.get_or_init(try_once).clone()
}

fn try_once() -> Result<(), String> {
    let mut command = Command::new(UNSHARE[0]);
    command.args(&UNSHARE[1..]).arg(own_program()?).arg(ENTER).stdin(Stdio::null());
    let output = command.output().map_err(|e| format!("`unshare`: {e}"))?;
    if String::from_utf8_lossy(&output.stdout).trim() == READY {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&output.stderr);
    Err(why.lines().next_back().unwrap_or("`unshare` failed").to_string())
}

fn own_program() -> Result<String, String> {
    let path = std::env::current_exe().map_err(|e| e.to_string())?;
    path.into_os_string().into_string().map_err(|_| "its own path is not UTF-8".into())
}

/// Relay from namespaces to a server. It ends on drop.
pub struct Loopback {
    before: Vec<String>,
    relay: JoinHandle<()>,
}

impl Loopback {
    /// Starts a relay to a server on loopback, with a socket in `folder`. Call [`check`] before.
    pub fn start(folder: &Path, server: SocketAddr) -> io::Result<Loopback> {
        // The path of a socket may have about 100 bytes only.
        let open = File::open(folder)?;
        let sockets = UnixListener::bind(format!("/proc/self/fd/{}/{SOCKET}", open.as_raw_fd()))?;
        let relay = tokio::spawn(async move {
            while let Ok((from, _)) = sockets.accept().await {
                let Ok(from) = from.into_std() else { continue };
                tokio::spawn(async move {
                    let received = tokio::task::spawn_blocking(move || receive(&from)).await;
                    if let Ok(Ok(listener)) = received {
                        let _ = relay(listener, server).await;
                    }
                });
            }
        });
        let own = own_program().map_err(io::Error::other)?;
        let mut before: Vec<String> = UNSHARE.iter().map(|a| a.to_string()).collect();
        before.extend([own, ENTER.into(), server.port().to_string()]);
        Ok(Loopback { before, relay })
    }

    /// Returns the command line that runs `command` without a network. Its working folder must be
    /// in the folder of the relay.
    pub fn command(&self, command: &[String]) -> Vec<String> {
        [&self.before, command].concat()
    }
}

impl Drop for Loopback {
    fn drop(&mut self) {
        self.relay.abort();
    }
}

/// Receives the listener of a namespace.
fn receive(from: &UnixStream) -> io::Result<TcpListener> {
    from.set_nonblocking(false)?;
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    recvmsg(from, &mut [IoSliceMut::new(&mut [0])], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut all = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut sent) => sent.next(),
        _ => None,
    });
    let sent: OwnedFd = all.next().ok_or(io::ErrorKind::InvalidData)?;
    let listener = TcpListener::from(sent);
    listener.set_nonblocking(true)?;
    Ok(listener)
}

async fn relay(listener: TcpListener, server: SocketAddr) -> io::Result<()> {
    let listener = Listener::from_std(listener)?;
    loop {
        let (mut from, _) = listener.accept().await?;
        tokio::spawn(async move {
            let mut to = TcpStream::connect(server).await?;
            from.set_nodelay(true)?;
            to.set_nodelay(true)?;
            copy_bidirectional(&mut from, &mut to).await
        });
    }
}

/// Runs the rest of a command line, a port and a command, in new namespaces. Returns only if that
/// fails, or without a command.
pub fn enter(arguments: &[OsString]) -> ExitCode {
    let failed = match run(arguments) {
        Ok(()) => return ExitCode::SUCCESS,
        Err(e) => e,
    };
    eprintln!("loopback: {failed}");
    ExitCode::from(127)
}

fn run(arguments: &[OsString]) -> io::Result<()> {
    raise()?;
    let [port, program, rest @ ..] = arguments else {
        println!("{READY}");
        return Ok(());
    };
    let port = port.to_str().and_then(|p| p.parse().ok()).ok_or(io::ErrorKind::InvalidInput)?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    let to = UnixStream::connect(Path::new("..").join(SOCKET))?;
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let sockets = [listener.as_fd()];
    control.push(SendAncillaryMessage::ScmRights(&sockets));
    sendmsg(&to, &[IoSlice::new(&[0])], &mut control, SendFlags::empty())?;
    // A killed process leaves no program behind.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // The program gets no rights that it would not have outside.
    rustix::thread::clear_ambient_capability_set()?;
    let failed = Command::new(program).args(rest).exec();
    Err(io::Error::new(failed.kind(), format!("`{}`: {failed}", program.display())))
}

/// Raises the loopback interface, the first of a namespace, by a message of netlink.
fn raise() -> io::Result<()> {
    const NEW_LINK: u16 = 16;
    const REQUEST_AND_ANSWER: u16 = 1 | 4;
    const UP: u32 = 1;
    let mut message = Vec::new();
    message.extend(32_u32.to_ne_bytes());
    message.extend(NEW_LINK.to_ne_bytes());
    message.extend(REQUEST_AND_ANSWER.to_ne_bytes());
    // Sequence, sender, family and type are 0; the interface is 1.
    message.extend([0; 12]);
    message.extend(1_u32.to_ne_bytes());
    message.extend([UP, UP].map(u32::to_ne_bytes).concat());
    let link = socket(AddressFamily::NETLINK, SocketType::RAW, None)?;
    sendto(&link, &message, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    let mut answer = [0; 64];
    let (_, size) = recv(&link, &mut answer, RecvFlags::empty())?;
    // The answer has a header of 16 bytes and a negative error number, or 0.
    let code = answer[..size].get(16..20).and_then(|b| b.try_into().ok()).map(i32::from_ne_bytes);
    match code {
        Some(0) => Ok(()),
        Some(code) => Err(io::Error::from_raw_os_error(-code)),
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}
