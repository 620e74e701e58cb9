//! The recording on the disk: a line as soon as an exchange is over.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Mutex;

use ctxbench_provider::Wire;
use ctxbench_provider::wire::event_data;
use ctxbench_scenarios::formats::exchanges::{Bodies, Exchange, Header, Line, Passed};

use ctxbench_os::redact::Redactor;

pub struct RecordingFile(Mutex<FileState>);

struct FileState {
    file: File,
    bodies: Bodies,
    /// Takes secrets out of bodies, where that was asked for.
    redactor: Option<Redactor>,
    /// The first line that could not be written.
    failed: Option<io::Error>,
    exchanges: u64,
}

impl RecordingFile {
    /// Creates a file that only its owner may read; an existing file is an error.
    pub(super) fn create(path: &Path, header: Header) -> io::Result<RecordingFile> {
        let mut options = OpenOptions::new();
        options.create_new(true).append(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;
            options.mode(0o600);
        }
        let mut file = options.open(path)?;
        let redactor = header.redacted.then(Redactor::default);
        let header = text(&Line::CtxbenchRecording(header));
        if let Err(e) = header.and_then(|header| file.write_all(header.as_bytes())) {
            // A file that is there would be in the way of the next try.
            let _ = std::fs::remove_file(path);
            return Err(e);
        }
        let (bodies, failed, exchanges) = (Bodies::default(), None, 0);
        Ok(RecordingFile(Mutex::new(FileState { file, bodies, redactor, failed, exchanges })))
    }

    /// Adds an exchange; its body is given apart.
    pub(super) fn exchange(&self, wire: Wire, mut exchange: Exchange, body: Option<String>) {
        let Ok(mut state) = self.0.lock() else { return };
        let FileState { bodies, redactor, .. } = &mut *state;
        let mut body = body;
        if let Some(redactor) = redactor {
            body = body.map(|b| clean(redactor, b));
            exchange.reply = exchange.reply.map(|r| clean(redactor, clean_stream(wire, r)));
            exchange.error = exchange.error.map(|e| redactor.text(&e).into_owned());
        }
        exchange.body = body.map(|b| bodies.pack(exchange.number, &b));
        state.exchanges += 1;
        state.add(&Line::Exchange(Box::new(exchange)));
    }

    /// Adds a call that asked for no reply.
    pub(super) fn passed(&self, passed: Passed) {
        if let Ok(mut state) = self.0.lock() {
            state.add(&Line::Passed(passed));
        }
    }

    /// Returns the number of requests for replies, and why the file is incomplete.
    pub fn outcome(&self) -> (u64, Option<String>) {
        let state = self.0.lock();
        state.map_or((0, None), |s| (s.exchanges, s.failed.as_ref().map(ToString::to_string)))
    }
}

impl FileState {
    fn add(&mut self, line: &Line) {
        let before = self.file.metadata().map(|m| m.len());
        let written = text(line).and_then(|text| self.file.write_all(text.as_bytes()));
        if let Err(e) = written {
            // The lines before stay whole, and so will the next one.
            if let Ok(before) = before {
                let _ = self.file.set_len(before);
            }
            self.failed.get_or_insert(e);
        }
    }
}

fn text(line: &Line) -> io::Result<String> {
    Ok(serde_json::to_string(line)? + "\n")
}

/// Cleans the whole reply of a stream: a secret may be split between events.
fn clean_stream(wire: Wire, reply: String) -> String {
    if reply.trim_start().starts_with('{') {
        return reply;
    }
    let whole = (wire.assemble)(&event_data(&reply));
    whole.and_then(|w| String::from_utf8(w).ok()).unwrap_or(reply)
}

fn clean(redactor: &mut Redactor, text: String) -> String {
    match serde_json::from_str(&text) {
        Ok(mut value) => {
            redactor.value(&mut value);
            value.to_string()
        }
        Err(_) => redactor.text(&text).into_owned(),
    }
}
