//! Which addresses are part of the public internet.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A range of addresses, written as `10.0.0.0/8` or `fd00::/8`; a single address is a range of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Net {
    address: IpAddr,
    bits: u8,
}

impl Net {
    const fn v4(octets: [u8; 4], bits: u8) -> Self {
        let [a, b, c, d] = octets;
        Self { address: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), bits }
    }

    const fn v6(first: u16, last: u16, bits: u8) -> Self {
        Self { address: IpAddr::V6(Ipv6Addr::new(first, 0, 0, 0, 0, 0, 0, last)), bits }
    }

    /// Loopback and private use. Link-local is not among them: that is where clouds keep their metadata.
    pub const PRIVATE: [Self; 6] = [
        Self::v4([127, 0, 0, 0], 8),
        Self::v4([10, 0, 0, 0], 8),
        Self::v4([172, 16, 0, 0], 12),
        Self::v4([192, 168, 0, 0], 16),
        Self::v6(0, 1, 128),
        Self::v6(0xfc00, 0, 7),
    ];

    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(net), IpAddr::V4(address)) => {
                prefix(net.to_bits().into(), 32, self.bits) == prefix(address.to_bits().into(), 32, self.bits)
            }
            (IpAddr::V6(net), IpAddr::V6(address)) => {
                prefix(net.to_bits(), 128, self.bits) == prefix(address.to_bits(), 128, self.bits)
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

fn prefix(address: u128, width: u8, bits: u8) -> u128 {
    address.checked_shr(u32::from(width - bits)).unwrap_or(0)
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no range of addresses; write it as 10.0.0.0/8 or fd00::/8")]
pub struct NotANet(String);

impl FromStr for Net {
    type Err = NotANet;

    fn from_str(text: &str) -> Result<Self, NotANet> {
        let wrong = || NotANet(text.to_owned());
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(width), str::parse).map_err(|_| wrong())?;
        if bits > width {
            return Err(wrong());
        }
        Ok(Self { address, bits })
    }
}

impl TryFrom<String> for Net {
    type Error = NotANet;

    fn try_from(text: String) -> Result<Self, NotANet> {
        text.parse()
    }
}

impl From<Net> for String {
    fn from(net: Net) -> Self {
        net.to_string()
    }
}

impl fmt::Display for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

/// Whether anybody on the internet could mean this address. What is not sure is not.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// Azure's machines ask it for their settings and keys. It exists inside of their network only.
const WIRE_SERVER: Ipv4Addr = Ipv4Addr::new(168, 63, 129, 16);

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let denied = match (a, b, c) {
        // A cloud's metadata, at an address that looks like anybody's.
        _ if address == WIRE_SERVER => true,
        // This network, private use, loopback.
        (0 | 10 | 127, _, _) => true,
        // Shared by carriers; some clouds keep their metadata there.
        (100, 64..=127, _) => true,
        // Link-local: metadata services.
        (169, 254, _) => true,
        (172, 16..=31, _) => true,
        (192, 168, _) => true,
        // Protocol assignments, documentation, relays to IPv6.
        (192, 0, 0 | 2) | (192, 88, 99) => true,
        (198, 18..=19, _) | (198, 51, 100) | (203, 0, 113) => true,
        // Multicast, reserved, broadcast.
        (224..=255, _, _) => true,
        _ => false,
    };
    !denied
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    // Addresses that carry an IPv4 address go where that one goes.
    let [_, _, _, _, _, _, high, low] = segments;
    let last = || v4(high, low);
    match segments {
        [0, 0, 0, 0, 0, 0xffff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => is_public_v4(last()),
        // 6to4.
        [0x2002, high, low, ..] => is_public_v4(v4(high, low)),
        // Local use of NAT64, Teredo, benchmarks and documentation.
        [0x64, 0xff9b, 1, ..] | [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => false,
        // Everything else outside of global unicast: unspecified, loopback, unique local, link-local, multicast.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

fn v4(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S7: every range that leads inside, in all its spellings.
    #[test]
    fn inner_addresses_are_not_public() {
        let inner = [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.255.255.254",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "::ffff:127.0.0.1",
            "::ffff:a9fe:a9fe",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::1",
            "2001::1",
            "2001:db8::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "100::1",
            "3fff::1",
        ];
        for address in inner {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
        for address in [
            "1.1.1.1",
            "168.63.129.15",
            "100.63.255.255",
            "172.32.0.1",
            "192.0.1.1",
            "2606:4700::1111",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
        ] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn ranges_contain_what_they_say() {
        let net: Net = "10.0.0.0/8".parse().unwrap();
        assert!(net.contains("10.255.0.1".parse().unwrap()) && !net.contains("11.0.0.1".parse().unwrap()));
        assert!(!net.contains("::ffff:10.0.0.1".parse().unwrap()));
        let all: Net = "::/0".parse().unwrap();
        assert!(all.contains("fe80::1".parse().unwrap()));
        let one: Net = "::1".parse().unwrap();
        assert!(one.contains("::1".parse().unwrap()) && !one.contains("::2".parse().unwrap()));
        assert_eq!(serde_json::to_string(&net).unwrap(), "\"10.0.0.0/8\"");
        assert_eq!(serde_json::from_str::<Net>("\"10.0.0.0/8\"").unwrap(), net);
        let private = Net::PRIVATE.map(|net| net.to_string());
        assert_eq!(private, ["127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "::1/128", "fc00::/7"]);
        for wrong in ["", "10.0.0.0/33", "::/129", "host/8", "10.0.0.0/-1"] {
            assert!(wrong.parse::<Net>().is_err(), "{wrong}");
        }
    }
}
