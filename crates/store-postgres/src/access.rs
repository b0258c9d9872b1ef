//! The way to the database, read from the URL once: where it is, who we are, and how the connection is encrypted.

use std::time::Duration;

use percent_encoding::percent_decode_str;
use servo_store::{Error, Result};
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::{Client, Connection, Socket};

use crate::config::Config;
use crate::error;
use crate::tls::{self, Mode, Settings, Tls};

/// For TLS and the login, once the socket is there. A busy server may be slow to let somebody in.
const LOGIN_PATIENCE: Duration = Duration::from_secs(10);

const KEEPALIVE_AFTER: Duration = Duration::from_secs(60);

/// Parameters of libpq that are about TLS and that we do not have: better refused by name than by a word about the URL.
const NOT_SUPPORTED: [&str; 8] = [
    "sslpassword",
    "sslcrl",
    "sslcrldir",
    "sslsni",
    "sslcompression",
    "sslcertmode",
    "ssl_min_protocol_version",
    "ssl_max_protocol_version",
];

#[derive(Debug, Clone)]
pub(crate) struct Access {
    pub(crate) driver: tokio_postgres::Config,
    pub(crate) tls: Tls,
    /// For everything until the server has let us in: the driver's own limit is for the socket alone.
    patience: Duration,
}

impl Access {
    pub(crate) fn new(config: &Config) -> Result<Self> {
        let (url, mut settings) = split(&config.url)?;
        let parsed: std::result::Result<tokio_postgres::Config, _> = url.parse();
        // The driver's message may quote the URL.
        let mut driver = parsed.map_err(|_| Error::Invalid {
            field: "url".to_owned(),
            reason: "is not a URL such as postgres://user:password@host:5432/database?sslmode=verify-full".to_owned(),
        })?;
        if settings.mode.is_none() {
            // Of a text that is no URL, in which the driver has found it.
            settings.mode = match driver.get_ssl_mode() {
                SslMode::Disable => Some("disable".to_owned()),
                SslMode::Require => Some("require".to_owned()),
                _ => None,
            };
        }
        let tls = Tls::new(&settings)?;
        let ssl_mode = ssl_mode(&driver, &tls);
        driver.application_name("servo").connect_timeout(config.acquire_timeout).ssl_mode(ssl_mode);
        // Connections are used from the last one back, so some rest for long. What is between must not forget them.
        driver.keepalives_idle(KEEPALIVE_AFTER);
        if driver.get_hosts().is_empty() {
            // Certificates may name addresses, and the driver asks for a name before it encrypts.
            for address in driver.get_hostaddrs().to_vec() {
                driver.host(address.to_string());
            }
        }
        Ok(Self { driver, tls, patience: config.acquire_timeout + LOGIN_PATIENCE })
    }

    pub(crate) async fn connect(&self) -> Result<(Client, Connection<Socket, tls::Stream>)> {
        let connecting = tokio::time::timeout(self.patience, self.driver.connect(self.tls.clone())).await;
        let slow =
            |_| Error::Unavailable { detail: "the database does not answer in time".to_owned(), maybe_written: false };
        connecting.map_err(slow)?.map_err(|error| error::connecting(&error, self.mode()))
    }

    pub(crate) fn mode(&self) -> Mode {
        self.tls.mode()
    }
}

/// What is to be said of a URL over which a password and every tenant's data may be read, or somebody else may answer. `None` where
/// the certificate is verified, or the database is on this machine.
pub fn exposure(url: &str) -> Option<&'static str> {
    let access = Access::new(&Config::new(url)).ok()?;
    let is_here = |host: &Host| match host {
        Host::Tcp(name) => {
            let address = name.parse::<std::net::IpAddr>();
            address.map_or(name.eq_ignore_ascii_case("localhost"), |address| address.is_loopback())
        }
        Host::Unix(_) => true,
    };
    let hosts = access.driver.get_hosts();
    if access.tls.verifies() || (!hosts.is_empty() && hosts.iter().all(is_here)) {
        return None;
    }
    Some(match access.mode() {
        Mode::Disable => "the connection to the database is not encrypted",
        Mode::Prefer => {
            "the database's password and data may go unencrypted, and nothing says that it is this database"
        }
        _ => "the connection to the database is encrypted, but nothing says that it is this database",
    })
}

/// A socket in the file system needs no encryption, and no server offers it there.
fn ssl_mode(driver: &tokio_postgres::Config, tls: &Tls) -> SslMode {
    let is_local = |host: &Host| !matches!(host, Host::Tcp(_));
    let hosts = driver.get_hosts();
    if !hosts.is_empty() && hosts.iter().all(is_local) { SslMode::Disable } else { tls.mode().driver() }
}

/// Takes the parameters that are ours out of a URL. A text in libpq's other form, `host=… user=…`, is left as it is.
fn split(url: &str) -> Result<(String, Settings)> {
    let mut settings = Settings::default();
    let scheme = ["postgres://", "postgresql://"].into_iter().find(|scheme| url.starts_with(scheme));
    // A password may hold a question mark: parameters begin behind the host.
    let host = scheme.map(|scheme| url[scheme.len()..].find('@').map_or(scheme.len(), |at| scheme.len() + at + 1));
    let Some((base, query)) = host.and_then(|host| {
        let mark = host + url[host..].find('?')?;
        Some((&url[..mark], &url[mark + 1..]))
    }) else {
        return Ok((url.to_owned(), settings));
    };
    let mut others = Vec::new();
    for pair in query.split('&') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if let Some(name) = NOT_SUPPORTED.into_iter().find(|known| *known == name) {
            let reason = "is not supported: leave it out of the URL".to_owned();
            return Err(Error::Invalid { field: name.to_owned(), reason });
        }
        match settings.field(name) {
            Some(field) => {
                let decoded = percent_decode_str(value).decode_utf8();
                let value = decoded
                    .map_err(|_| Error::Invalid { field: name.to_owned(), reason: "is not UTF-8".to_owned() })?;
                // Empty means absent, as in libpq.
                *field = Some(value.into_owned()).filter(|value| !value.is_empty());
            }
            None => others.push(pair),
        }
    }
    let rest = if others.is_empty() { String::new() } else { format!("?{}", others.join("&")) };
    Ok((format!("{base}{rest}"), settings))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_parameters_leave_the_url() {
        let (url, settings) =
            split("postgres://u:p?q&sslmode=disable@h/d?sslmode=verify-full&options=-c%20x&sslrootcert=%2Fa%20b.pem")
                .unwrap();
        assert_eq!(url, "postgres://u:p?q&sslmode=disable@h/d?options=-c%20x");
        assert_eq!(settings.mode.as_deref(), Some("verify-full"));
        assert_eq!(settings.root.as_deref(), Some("/a b.pem"));
        assert_eq!(split("postgresql://h/d?sslcert=a&sslkey=").unwrap().0, "postgresql://h/d");
        for same in ["host=h user=u sslmode=require", "postgres://u:p@h/d", "postgres://h"] {
            assert_eq!(split(same).unwrap(), (same.to_owned(), Settings::default()));
        }
    }

    #[test]
    fn what_we_do_not_have_is_refused_by_name() {
        let error = split("postgres://u:hunter2@h/d?sslcrl=/x").unwrap_err().to_string();
        assert!(error.contains("sslcrl") && !error.contains("hunter2"), "{error}");
    }

    #[test]
    fn a_connection_across_a_network_that_is_not_verified_is_told() {
        for url in ["postgres://u:p@db/d", "postgres://u:p@10.0.0.1/d?sslmode=require", "host=db sslmode=disable"] {
            let told = exposure(url).unwrap_or_else(|| panic!("{url}"));
            assert!(told.contains("database"), "{told}");
        }
        for url in [
            "postgres://u:p@localhost/d",
            "postgres://u:p@127.0.0.1:5433/d?sslmode=disable",
            "postgres://u:p@[::1]/d",
            "postgres://u@%2Fvar%2Frun/d",
            "no url",
        ] {
            assert_eq!(exposure(url), None, "{url}");
        }
    }

    #[test]
    fn sockets_in_the_file_system_are_not_encrypted() {
        for (url, expected) in [
            ("postgres://u@%2Fvar%2Frun/d?sslmode=require", SslMode::Disable),
            ("postgres://u@h/d?sslmode=require", SslMode::Require),
            ("postgres://u@h/d", SslMode::Prefer),
            ("host=h sslmode=disable", SslMode::Disable),
        ] {
            assert_eq!(Access::new(&Config::new(url)).unwrap().driver.get_ssl_mode(), expected, "{url}");
        }
    }
}
