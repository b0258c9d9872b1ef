//! A server with a script: one connection per reply, in order. It knows no HTTP beyond what it must read.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;

/// What to answer on one connection.
pub(crate) enum Reply {
    /// These bytes, then the end of the connection.
    Close(String),
    /// These bytes, and silence until the script is over and the test has looked.
    Hold(String),
}

impl Reply {
    pub(crate) fn json(status: u16, body: &str) -> Self {
        let kind = if status < 400 { "application/json" } else { "application/problem+json" };
        Self::whole(status, kind, body)
    }

    pub(crate) fn whole(status: u16, kind: &str, body: &str) -> Self {
        let length = body.len();
        Self::Close(format!(
            "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nx-request-id: req_1\r\nconnection: close\r\n\r\n{body}"
        ))
    }

    /// The head of an event stream and its first bytes. Without a length it lasts until the connection ends.
    pub(crate) fn stream(body: &str) -> String {
        format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{body}")
    }
}

pub(crate) struct Server {
    pub(crate) url: String,
    requests: Receiver<String>,
    thread: JoinHandle<Vec<TcpStream>>,
}

impl Server {
    pub(crate) fn start(script: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (sender, requests) = channel();
        let thread = std::thread::spawn(move || {
            let mut held = Vec::new();
            for reply in script {
                let (mut socket, _) = listener.accept().unwrap();
                sender.send(read_request(&socket)).unwrap();
                match reply {
                    // The client may have heard enough and gone.
                    Reply::Close(bytes) => drop(socket.write_all(bytes.as_bytes())),
                    Reply::Hold(bytes) => {
                        socket.write_all(bytes.as_bytes()).unwrap();
                        held.push(socket);
                    }
                }
            }
            held
        });
        Self { url, requests, thread }
    }

    /// Every request as text, the head in lower case. Waits for the end of the script.
    pub(crate) fn finish(self) -> Vec<String> {
        drop(self.thread.join().unwrap());
        self.requests.try_iter().collect()
    }
}

fn read_request(socket: &TcpStream) -> String {
    let mut reader = BufReader::new(socket);
    let mut text = String::new();
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        let is_end = line.trim().is_empty();
        // The first line keeps its case: paths and queries have one.
        text.push_str(&if text.is_empty() { line } else { line.to_lowercase() });
        if is_end {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    text + &String::from_utf8(body).unwrap()
}
