//! The recorder: a proxy on loopback that passes everything on and keeps requests for replies and
//! their answers.
//!
//! `route` finds the purpose of a request, `address` its destination, `tee` keeps a copy of the
//! answer while it streams, `file` writes the line. Bodies are stored unchanged; the reader of the
//! file interprets them (`ctxbench_scenarios::formats::exchanges`).

mod address;
mod child;
mod file;
mod proxy;
mod route;
mod tee;

use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use ctxbench_scenarios::formats::exchanges::Header;
use tokio::net::TcpListener;

pub use address::{Upstreams, variables};
pub use child::run;
pub use file::RecordingFile;

use crate::serve::Clock;
use ctxbench_os::accept::{bind, listen};
use ctxbench_os::post;

pub struct Recorder {
    listener: TcpListener,
    address: SocketAddr,
    shared: Arc<proxy::ProxyState>,
}

impl Recorder {
    /// Listens on loopback and begins the file, which must not be there. Requests wait until
    /// [`Recorder::run`].
    pub async fn bind(
        port: u16,
        upstreams: Upstreams,
        out: &Path,
        header: Header,
        clock: Clock,
    ) -> std::io::Result<Recorder> {
        let (listener, address) = bind(port).await?;
        let recording = Arc::new(RecordingFile::create(out, header)?);
        let (client, number) = (post::client(), AtomicU64::new(0));
        let shared = Arc::new(proxy::ProxyState { upstreams, client, recording, clock, number });
        Ok(Recorder { listener, address, shared })
    }

    /// `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the recording, which outlives the recorder.
    pub fn recording(&self) -> Arc<RecordingFile> {
        self.shared.recording.clone()
    }

    /// Passes requests on until `until` is ready; running answers may take two more seconds.
    /// Answers that are unfinished then are recorded as left.
    pub async fn run(self, until: impl Future<Output = ()> + Send) {
        let shared = self.shared;
        let answer = move |request| proxy::handle(shared.clone(), request);
        listen(self.listener, answer, until).await;
    }
}
