//! S7: addresses that lead inside, in the spellings that have fooled others. The guard's own tests take them, and those of what makes
//! requests for tenants: `ctx.http` of sandboxed code, and functions that are called by push.
//!
//! What stands for the inside is this machine: a trap listens wherever it can be reached, so that a connection is counted by the socket
//! that was accepted and not by what the guard says about it.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// An address that must not be connected to.
#[derive(Debug, Clone)]
pub(crate) struct Vector {
    pub(crate) url: String,
    /// Whether a client that nobody guards comes to the trap by it. The others lead to networks that tests do not call, or nowhere.
    pub(crate) is_here: bool,
}

/// Spellings of this machine; `{p}` is the trap's port.
const HERE: &[&str] = &[
    // Dotted, short, octal, hexadecimal, decimal.
    "http://127.0.0.1:{p}/",
    "http://127.1:{p}/",
    "http://127.0.1:{p}/",
    "http://127.000.000.001:{p}/",
    "http://2130706433:{p}/",
    "http://0x7f000001:{p}/",
    "http://0X7F000001:{p}/",
    "http://0x7f.1:{p}/",
    "http://0x7f.0.1:{p}/",
    "http://0x7f.0x0.0x0.0x1:{p}/",
    "http://0177.0.0.1:{p}/",
    "http://0177.0.0.01:{p}/",
    "http://0177.0x0.0.1:{p}/",
    "http://017700000001:{p}/",
    // Others of the same range.
    "http://127.0.0.2:{p}/",
    "http://127.0.0.53:{p}/",
    "http://127.127.127.127:{p}/",
    "http://127.255.255.254:{p}/",
    "http://2130706434:{p}/",
    // This network, which is this machine.
    "http://0.0.0.0:{p}/",
    "http://0:{p}/",
    "http://00:{p}/",
    "http://0x0:{p}/",
    "http://0.0:{p}/",
    // A dot at the end.
    "http://127.0.0.1.:{p}/",
    "http://127.1.:{p}/",
    "http://2130706433.:{p}/",
    "http://0x7f000001.:{p}/",
    "http://0.0.0.0.:{p}/",
    // Digits and dots of other scripts, and escapes.
    "http://１２７.0.0.1:{p}/",
    "http://127。0。0。1:{p}/",
    "http://127．0．0．1:{p}/",
    "http://127｡0｡0｡1:{p}/",
    "http://①②⑦.⓪.⓪.①:{p}/",
    "http://𝟙𝟚𝟟.𝟘.𝟘.𝟙:{p}/",
    "http://127%2e0%2e0%2e1:{p}/",
    "http://%31%32%37.0.0.1:{p}/",
    "http://127.0.0.%31:{p}/",
    "http://0x7f%2E1:{p}/",
    "http://%EF%BC%91%EF%BC%92%EF%BC%97.0.0.1:{p}/",
    // The other protocol, also with an address of the first in it.
    "http://[::1]:{p}/",
    "http://[0:0:0:0:0:0:0:1]:{p}/",
    "http://[0000:0000:0000:0000:0000:0000:0000:0001]:{p}/",
    "http://[::0:1]:{p}/",
    "http://[::0.0.0.1]:{p}/",
    "http://[::]:{p}/",
    "http://[0:0:0:0:0:0:0:0]:{p}/",
    "http://[::ffff:127.0.0.1]:{p}/",
    "http://[::ffff:7f00:1]:{p}/",
    "http://[::FFFF:7F00:0001]:{p}/",
    "http://[0:0:0:0:0:ffff:127.0.0.1]:{p}/",
    "http://[0000:0000:0000:0000:0000:ffff:7f00:0001]:{p}/",
    "http://[::ffff:127.0.0.2]:{p}/",
    "http://[::ffff:0.0.0.0]:{p}/",
    // A name, in letters of all kinds.
    "http://localhost:{p}/",
    "http://LOCALHOST:{p}/",
    "http://LocalHost:{p}/",
    "http://ｌｏｃａｌｈｏｓｔ:{p}/",
    "http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ:{p}/",
    "http://loc%61lhost:{p}/",
    "http://local\u{ad}host:{p}/",
    "http://local\u{200b}host:{p}/",
    // Another host where the name of a user stands.
    "http://user@127.0.0.1:{p}/",
    "http://user:password@127.0.0.1:{p}/",
    "http://example.com@127.0.0.1:{p}/",
    "http://example.com:80@127.0.0.1:{p}/",
    "http://example.com%2f@127.0.0.1:{p}/",
    "http://1.1.1.1@0x7f000001:{p}/",
    "http://1.1.1.1@localhost:{p}/",
    "http://@127.0.0.1:{p}/",
    "http://a@b@127.0.0.1:{p}/",
    // Another host behind.
    "http://127.0.0.1:{p}#@example.com/",
    "http://127.0.0.1:{p}?@example.com/",
    "http://127.0.0.1:{p}\\@example.com/",
    "http://127.0.0.1:{p}/@example.com/",
    // What readers of addresses put right.
    "HTTP://127.0.0.1:{p}",
    "http:127.0.0.1:{p}/",
    "http:/127.0.0.1:{p}/",
    "http:///127.0.0.1:{p}/",
    "http:\\\\127.0.0.1:{p}\\",
    "  http://127.0.0.1:{p}/",
    "ht\ntp://127.0.0.1:{p}/",
    "http://127.0.\t0.1:{p}/",
    "http://127.0.0.1:000{p}/",
    "https://127.0.0.1:{p}/",
    "https://localhost:{p}/",
    "https://[::1]:{p}/",
];

/// Networks inside, other protocols, and what is no address.
const ELSEWHERE: &[&str] = &[
    // Private use, shared by carriers, link-local.
    "http://10.0.0.1/",
    "http://10.255.255.255/",
    "http://012.0.0.1/",
    "http://167772161/",
    "http://172.16.0.1/",
    "http://172.31.255.254/",
    "http://192.168.0.1/",
    "http://192.168.257/",
    "http://0xc0a80101/",
    "http://100.64.0.1/",
    "http://100.127.255.254/",
    "http://169.254.1.1/",
    // Where clouds keep keys.
    "http://169.254.169.254/latest/meta-data/",
    "http://169.254.43518/latest/meta-data/",
    "http://0xa9fea9fe/latest/meta-data/",
    "http://2852039166/latest/meta-data/",
    "http://0251.0376.0251.0376/latest/meta-data/",
    "http://169.254.169.254./latest/meta-data/",
    "http://①⑥⑨.254.169.254/latest/meta-data/",
    "http://169.254.170.2/v2/credentials",
    "http://100.100.100.200/latest/meta-data/",
    "http://192.0.0.192/latest/meta-data/",
    "http://168.63.129.16/machine",
    "http://[fd00:ec2::254]/latest/meta-data/",
    "http://[fd20:ce::254]/computeMetadata/v1/",
    "http://[::ffff:169.254.169.254]/",
    "http://[::ffff:a9fe:a9fe]/",
    "http://[::a9fe:a9fe]/",
    "http://[64:ff9b::a9fe:a9fe]/",
    "http://[64:ff9b::169.254.169.254]/",
    "http://[64:ff9b:1::a9fe:a9fe]/",
    "http://[2002:a9fe:a9fe::1]/",
    // Reserved, for documentation, for many at once.
    "http://192.0.2.1/",
    "http://192.88.99.1/",
    "http://198.18.0.1/",
    "http://198.19.255.254/",
    "http://198.51.100.1/",
    "http://203.0.113.1/",
    "http://224.0.0.1/",
    "http://239.255.255.250:1900/",
    "http://240.0.0.1/",
    "http://255.255.255.255/",
    // The same of the other protocol.
    "http://[::7f00:1]:{p}/",
    "http://[::ffff:0:127.0.0.1]:{p}/",
    "http://[64:ff9b::7f00:1]:{p}/",
    "http://[2002:7f00:1::]:{p}/",
    "http://[2001:0:7f00:1::]:{p}/",
    "http://[::ffff:10.0.0.1]/",
    "http://[::ffff:0a00:1]/",
    "http://[2002:a00:1::1]/",
    "http://[fc00::1]/",
    "http://[fd12:3456:789a::1]/",
    "http://[fe80::1]/",
    "http://[fec0::1]/",
    "http://[ff02::1]/",
    "http://[2001::1]/",
    "http://[2001:db8::1]/",
    "http://[100::1]/",
    "http://[3fff::1]/",
    "http://[5f00::1]/",
    // Other protocols.
    "file:///etc/passwd",
    "file://127.0.0.1/etc/passwd",
    "FILE:/etc/passwd",
    "gopher://127.0.0.1:{p}/_GET%20/",
    "gopher://localhost:{p}/_GET%20/",
    "dict://127.0.0.1:{p}/info",
    "ftp://127.0.0.1:{p}/",
    "ldap://127.0.0.1:{p}/",
    "tftp://127.0.0.1:{p}/x",
    "ws://127.0.0.1:{p}/",
    "wss://localhost:{p}/",
    "jar:http://127.0.0.1:{p}!/",
    "http+unix://%2Frun%2Fdocker.sock/info",
    "unix:/run/docker.sock",
    "data:text/plain,x",
    "javascript:1",
    // No addresses.
    "",
    "/",
    "//127.0.0.1:{p}/",
    "127.0.0.1:{p}",
    "localhost:{p}/",
    "http://",
    "http://:{p}/",
    "http://[::1",
    "http://127.0.0.1:99999/",
    "http://256.256.256.256:{p}/",
    "http://127.0.0.1.1:{p}/",
    "http://0x100000000:{p}/",
    "http://127.0.0.1%00.example.com:{p}/",
    "http://127.0.0.1 .example.com:{p}/",
    "http://[fe80::1%25lo]:{p}/",
    "http://[::1%25lo]:{p}/",
];

pub(crate) fn vectors(port: u16) -> Vec<Vector> {
    let of = |is_here: bool| move |text: &&str| Vector { url: text.replace("{p}", &port.to_string()), is_here };
    HERE.iter().map(of(true)).chain(ELSEWHERE.iter().map(of(false))).collect()
}

/// Listens at this machine's addresses on one port, answers every connection, and counts them.
pub(crate) struct Trap {
    pub(crate) port: u16,
    accepted: Arc<AtomicUsize>,
    tasks: Vec<JoinHandle<()>>,
}

impl Drop for Trap {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Trap {
    const AT: [&str; 6] = ["127.0.0.1", "127.0.0.2", "127.0.0.53", "127.127.127.127", "127.255.255.254", "::1"];

    #[expect(clippy::disallowed_methods, reason = "a test's own server, which ends with it")]
    pub(crate) async fn set() -> Self {
        let accepted = Arc::new(AtomicUsize::new(0));
        let listeners = Self::listeners().await;
        let port = listeners[0].local_addr().unwrap().port();
        let serve = |listener: TcpListener| {
            let count = accepted.clone();
            tokio::spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    count.fetch_add(1, Ordering::Relaxed);
                    // One that says nothing keeps nobody else from being counted.
                    tokio::spawn(answer(stream));
                }
            })
        };
        let tasks = listeners.into_iter().map(serve).collect();
        Self { port, accepted, tasks }
    }

    /// The same port everywhere. Somebody else may have one of them; then there is another.
    async fn listeners() -> Vec<TcpListener> {
        loop {
            let mut found = vec![TcpListener::bind((Self::AT[0], 0)).await.unwrap()];
            let port = found[0].local_addr().unwrap().port();
            for at in &Self::AT[1..] {
                let at: IpAddr = at.parse().unwrap();
                if let Ok(listener) = TcpListener::bind(SocketAddr::new(at, port)).await {
                    found.push(listener);
                }
            }
            if found.len() == Self::AT.len() {
                return found;
            }
        }
    }

    /// Connections so far. One that the system has taken and nobody has looked at yet is counted too: each listener takes them in their
    /// order, so what came before a connection of our own is counted when that one is answered.
    pub(crate) async fn accepted(&self) -> usize {
        for at in Self::AT {
            let mut stream = TcpStream::connect((at, self.port)).await.unwrap();
            stream.write_all(b"x").await.unwrap();
            stream.read_to_end(&mut Vec::new()).await.unwrap();
            self.accepted.fetch_sub(1, Ordering::Relaxed);
        }
        self.accepted.load(Ordering::Relaxed)
    }
}

async fn answer(mut stream: TcpStream) {
    drop(stream.read(&mut [0; 4096]).await);
    drop(stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\nconnection: close\r\n\r\ninside").await);
}
