//! Telling whoever started the server that it answers, and where.

use std::io::{IsTerminal as _, Write as _};
use std::net::SocketAddr;

use serde_json::json;
use servo_server::config::{Config, StoreConfig};

use crate::dev_key::DevKey;

#[derive(Debug, Clone, Copy)]
pub(crate) enum Announcement {
    /// One line of JSON on stdout.
    Json { ephemeral: bool },
    /// A line in the log.
    Log,
    /// For a person at a terminal, on stdout.
    Banner { ephemeral: bool, open: bool, virtual_time: bool, sample: bool },
}

pub(crate) struct Ready<'a> {
    pub(crate) address: SocketAddr,
    pub(crate) encrypted: bool,
    pub(crate) config: &'a Config,
    pub(crate) key: Option<DevKey>,
}

impl Ready<'_> {
    pub(crate) fn announce(&self, how: Announcement) {
        let api = format!("{}://{}", if self.encrypted { "https" } else { "http" }, self.address);
        let text = match how {
            Announcement::Log => {
                tracing::info!(api, store = self.store(), "ready");
                return;
            }
            Announcement::Json { ephemeral } => self.json(&api, ephemeral).to_string() + "\n",
            Announcement::Banner { ephemeral, virtual_time, sample, .. } => {
                self.banner(&api, ephemeral, virtual_time, sample)
            }
        };
        let mut stdout = std::io::stdout().lock();
        // A closed stdout is no reason not to serve.
        let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
        if let Announcement::Banner { open: true, .. } = how
            && std::io::stdout().is_terminal()
        {
            open(&format!("{api}/console/"));
        }
    }

    fn store(&self) -> String {
        match &self.config.store {
            StoreConfig::Sqlite { path } => path.display().to_string(),
            StoreConfig::Postgres { .. } => "postgres".to_owned(),
        }
    }

    fn json(&self, api: &str, ephemeral: bool) -> serde_json::Value {
        let data_dir = match &self.config.store {
            // Whoever reads the line may stand in another folder.
            StoreConfig::Sqlite { path } => Some(std::path::absolute(path).unwrap_or_else(|_| path.clone())),
            StoreConfig::Postgres { .. } => None,
        };
        let mut line = json!({"event": "ready", "api": api, "console": format!("{api}/console/"),
            "metrics": format!("{api}/metrics"), "dataDir": data_dir, "ephemeral": ephemeral, "pid": std::process::id(),
            "version": env!("CARGO_PKG_VERSION")});
        if let Some(key) = &self.key {
            line["key"] = json!(key.text);
        }
        line
    }

    fn banner(&self, api: &str, ephemeral: bool, virtual_time: bool, sample: bool) -> String {
        let data = if ephemeral { "temporary, removed at the end".to_owned() } else { self.store() };
        let auth = match &self.key {
            Some(DevKey { text, is_new: true, file }) => {
                format!("none needed on this machine; key {text} (also in {})", file.display())
            }
            Some(DevKey { file, .. }) => format!("none needed on this machine; a key is in {}", file.display()),
            None => "none: this machine only".to_owned(),
        };
        let time = match virtual_time {
            true => "  Time     virtual: waits and retries are over as soon as nothing else can run\n",
            false => "",
        };
        let sample = match sample {
            true => format!(
                "On a first start, an order of the demo waits for an approval. Give it in the console, or here:\n\
                 \x20 servo invocations list --status suspended --server {api}\n\
                 \x20 servo invocations signal ID approval --payload '{{\"yes\": true, \"by\": \"me\"}}' --server {api}\n"
            ),
            false => String::new(),
        };
        format!(
            "Servo {version}\n\n\
             \x20 Console  {api}/console/\n\
             \x20 API      {api}\n\
             \x20 Metrics  {api}/metrics\n\
             \x20 Docs     {api}/openapi.json\n\
             \x20 Data     {data}\n\
             \x20 Auth     {auth}\n{time}\n\
             {sample}See an order survive kill -9:\n\
             \x20 servo demo crash\n\n\
             Ctrl-C stops.\n\n",
            version = env!("CARGO_PKG_VERSION"),
        )
    }
}

/// Opens the page if there is a desktop; nobody minds if there is none.
fn open(url: &str) {
    for program in ["xdg-open", "open"] {
        let started = std::process::Command::new(program)
            .arg(url)
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn();
        if started.is_ok() {
            return;
        }
    }
}
