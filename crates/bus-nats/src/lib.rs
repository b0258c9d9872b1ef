//! The bus on NATS JetStream. Events go to one stream, each under `servo.events.<tenant>.<run>.<type>`, with the event id
//! as message id: JetStream drops repeats inside its window, and consumers can drop the rest.
//!
//! Being unable to connect is an ordinary state: the relay waits and the log keeps what is to be published.

mod login;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_nats::jetstream::{self, context::PublishErrorKind, message::PublishMessage, stream};
use async_trait::async_trait;
use bytes::Bytes;
use servo_runtime::{Bus, BusError, BusMessage};

pub use login::{Login, TlsFiles, Unusable};

/// Where and how to publish.
#[derive(Debug, Clone)]
pub struct Config {
    /// Without credentials, which would not be used.
    pub url: String,
    pub login: Login,
    pub tls: TlsFiles,
    /// Made if it is not there.
    pub stream: String,
    pub subject_prefix: String,
    /// How long to wait for the server's word on one message.
    pub ack_timeout: Duration,
}

impl Config {
    pub fn new(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            login: Login::default(),
            tls: TlsFiles::default(),
            stream: "SERVO_EVENTS".to_owned(),
            subject_prefix: "servo.events".to_owned(),
            ack_timeout: Duration::from_secs(5),
        }
    }
}

/// Repeats inside this window are dropped by the server.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(120);

#[derive(Debug)]
pub struct NatsBus {
    config: Config,
    client: async_nats::Client,
    context: jetstream::Context,
    /// Whether the stream is known to be there; unset when the server says that it is not.
    stream_known: AtomicBool,
}

impl NatsBus {
    /// Starts connecting and returns. A server that is down, or does not let us in, is found later; a malformed address and
    /// files that cannot be read are errors now.
    pub async fn connect(config: Config) -> Result<Self, Unusable> {
        login::check_url(&config.url)?;
        let options = async_nats::ConnectOptions::new()
            .name("servo")
            .retry_on_initial_connect()
            .connection_timeout(Duration::from_secs(5));
        let options = login::tls(login::login(options, &config.login).await?, &config.tls, &config.url).await?;
        let client = options.connect(&config.url).await.map_err(|error| Unusable(error.to_string()))?;
        let mut context = jetstream::new(client.clone());
        context.set_timeout(config.ack_timeout);
        Ok(Self { config, client, context, stream_known: AtomicBool::new(false) })
    }

    pub fn is_connected(&self) -> bool {
        self.client.connection_state() == async_nats::connection::State::Connected
    }

    async fn ready(&self) -> Result<(), BusError> {
        if !self.is_connected() {
            return Err(BusError::Unavailable("not connected".to_owned()));
        }
        if self.stream_known.load(Ordering::Relaxed) {
            return Ok(());
        }
        let wanted = stream::Config {
            name: self.config.stream.clone(),
            subjects: vec![format!("{}.>", self.config.subject_prefix)],
            duplicate_window: DUPLICATE_WINDOW,
            ..stream::Config::default()
        };
        match self.context.get_or_create_stream(wanted).await {
            Ok(_) => {
                self.stream_known.store(true, Ordering::Relaxed);
                Ok(())
            }
            Err(error) => Err(BusError::Unavailable(error.to_string())),
        }
    }

    /// A message that the stream refuses will be refused again; everything else is the connection.
    fn classify(&self, error: &jetstream::context::PublishError) -> BusError {
        match error.kind() {
            PublishErrorKind::WrongLastMessageId
            | PublishErrorKind::WrongLastSequence
            | PublishErrorKind::MaxPayloadExceeded
            | PublishErrorKind::Other => BusError::Refused(error.to_string()),
            PublishErrorKind::StreamNotFound => {
                self.stream_known.store(false, Ordering::Relaxed);
                BusError::Unavailable(error.to_string())
            }
            _ => BusError::Unavailable(error.to_string()),
        }
    }

    fn subject(&self, message: &BusMessage) -> String {
        let BusMessage { tenant, run_id, event_type, .. } = message;
        format!("{}.{tenant}.{run_id}.{event_type}", self.config.subject_prefix)
    }
}

#[async_trait]
impl Bus for NatsBus {
    fn name(&self) -> &'static str {
        "nats"
    }

    /// Sends the whole batch, then collects the acknowledgements in order: one round trip for many events, and the order
    /// on the wire is the order of the log.
    async fn publish(&self, messages: &[BusMessage]) -> Vec<Result<(), BusError>> {
        if let Err(error) = self.ready().await {
            return messages.iter().map(|_| Err(error.clone())).collect();
        }
        let mut sent = Vec::with_capacity(messages.len());
        for message in messages {
            let publish = PublishMessage::build()
                .message_id(message.event_id.to_string())
                .payload(Bytes::copy_from_slice(message.document.as_bytes()));
            let sending = self.context.send_publish(self.subject(message), publish).await;
            let failed = sending.is_err();
            sent.push(sending);
            if failed {
                break;
            }
        }
        let mut results = Vec::with_capacity(messages.len());
        for sending in sent {
            let acked = match sending {
                Ok(ack) => ack.await.map(|_| ()),
                Err(error) => Err(error),
            };
            results.push(acked.map_err(|error| self.classify(&error)));
        }
        while results.len() < messages.len() {
            results.push(Err(BusError::Unavailable("not sent".to_owned())));
        }
        results
    }
}
