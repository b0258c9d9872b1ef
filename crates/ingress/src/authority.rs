//! Hosts and ports as requests name them, in one spelling: `LOCALHOST.:80` and `localhost:80` are the same.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A name or an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    Ip(IpAddr),
    /// In lower case, without the dot at the end.
    Name(String),
}

/// A host, and a port where one is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority {
    pub host: Host,
    pub port: Option<u16>,
}

impl Authority {
    /// `None` for everything that is not exactly a host and perhaps a port: a user in front of it, a path behind it, a list.
    pub fn parse(text: &str) -> Option<Self> {
        let (host, rest) = match text.strip_prefix('[') {
            Some(inside) => {
                let (address, rest) = inside.split_once(']')?;
                (Host::ip(IpAddr::V6(address.parse::<Ipv6Addr>().ok()?)), rest)
            }
            None => {
                let (host, rest) = text.split_at(text.find(':').unwrap_or(text.len()));
                (Host::name(host)?, rest)
            }
        };
        let port = match rest.strip_prefix(':') {
            None if rest.is_empty() => None,
            Some("") => None,
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => Some(digits.parse().ok()?),
            _ => return None,
        };
        Some(Self { host, port })
    }
}

/// As it stands in a configuration.
impl FromStr for Authority {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text).ok_or("is a host such as servo.example.com, 10.1.2.3 or [fd00::1], perhaps with a port")
    }
}

impl Host {
    /// IPv4 inside of IPv6 is the same address.
    pub(crate) fn ip(address: IpAddr) -> Self {
        Self::Ip(address.to_canonical())
    }

    fn name(text: &str) -> Option<Self> {
        let text = text.strip_suffix('.').unwrap_or(text);
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
        if text.is_empty() || text.starts_with('.') || text.contains("..") || !text.bytes().all(plain) {
            return None;
        }
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            return Some(Self::Ip(IpAddr::V4(address)));
        }
        Some(Self::Name(text.to_ascii_lowercase()))
    }

    /// This machine, by the one name that no resolver can lead elsewhere, or by address.
    pub(crate) fn is_loopback(&self) -> bool {
        match self {
            Self::Ip(address) => address.is_loopback(),
            Self::Name(name) => name == "localhost",
        }
    }
}
