//! Where spans go and how: the server's own keys, and OpenTelemetry's variables for what those leave open.
//!
//! Variables are passed in. As the specification asks, a value that cannot be used is told and passed over.

use std::time::Duration;

use percent_encoding::percent_decode_str;

use crate::sampler::Sampler;

const PATH: &str = "v1/traces";

/// What is wrong with a setting, and which.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {reason}")]
pub struct Wrong {
    pub key: String,
    pub reason: String,
}

/// The server's own keys.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Given {
    /// The collector's address, without the path.
    pub endpoint: Option<String>,
    pub service_name: Option<String>,
    /// The part of the traces that begin here that is recorded.
    pub sample_ratio: Option<f64>,
}

#[derive(Clone, PartialEq)]
pub struct Settings {
    /// With the path.
    pub url: String,
    /// They may hold credentials, so they are never printed.
    pub headers: Vec<(String, String)>,
    pub service_name: String,
    /// Other attributes of the service.
    pub resource: Vec<(String, String)>,
    pub sampler: Sampler,
    /// Spans that wait.
    pub queue_max: usize,
    /// Spans sent at a time.
    pub batch_max: usize,
    /// How long a batch waits to become full.
    pub delay: Duration,
    /// How long one request may take.
    pub timeout: Duration,
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings").field("service_name", &self.service_name).finish_non_exhaustive()
    }
}

impl Settings {
    /// `None` when nobody has said where spans go. Beside it, what was passed over.
    pub fn read(given: &Given, variables: &[(String, String)]) -> (Option<Self>, Vec<Wrong>) {
        let mut reader = Reader { variables, wrong: Vec::new() };
        let settings = reader.settings(given);
        (settings, reader.wrong)
    }
}

struct Reader<'a> {
    variables: &'a [(String, String)],
    wrong: Vec<Wrong>,
}

impl Reader<'_> {
    /// An empty value is as good as none.
    fn text(&self, name: &str) -> Option<String> {
        let found = self.variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.trim());
        found.filter(|value| !value.is_empty()).map(str::to_owned)
    }

    /// A setting of the exporter: that for traces goes before that for all signals.
    fn exporter(&self, name: &str) -> Option<String> {
        let of = |signal: &str| self.text(&format!("OTEL_EXPORTER_OTLP_{signal}{name}"));
        of("TRACES_").or_else(|| of(""))
    }

    fn pass_over(&mut self, key: &str, reason: &str) {
        self.wrong.push(Wrong { key: key.to_owned(), reason: reason.to_owned() });
    }

    fn number(&mut self, name: &str, default: u64, most: u64) -> u64 {
        let Some(text) = self.text(name) else { return default };
        match text.parse() {
            Ok(number) if (1..=most).contains(&number) => number,
            _ => {
                self.pass_over(name, &format!("is 1 to {most}; it counts as {default}"));
                default
            }
        }
    }

    fn settings(&mut self, given: &Given) -> Option<Settings> {
        let is_off = self.text("OTEL_SDK_DISABLED").is_some_and(|text| text.eq_ignore_ascii_case("true"))
            || self.text("OTEL_TRACES_EXPORTER").is_some_and(|text| text == "none");
        let url = self.url(given).filter(|_| !is_off)?;
        for (name, value, meant) in [
            ("PROTOCOL", self.exporter("PROTOCOL"), "http/protobuf"),
            ("COMPRESSION", self.exporter("COMPRESSION"), "none"),
        ] {
            if value.is_some_and(|value| value != meant) {
                self.pass_over(&format!("OTEL_EXPORTER_OTLP_{name}"), &format!("this server knows {meant} only"));
            }
        }
        let headers = self.exporter("HEADERS").map(|text| self.pairs("OTEL_EXPORTER_OTLP_HEADERS", &text));
        let resource = self.text("OTEL_RESOURCE_ATTRIBUTES").map(|text| self.pairs("OTEL_RESOURCE_ATTRIBUTES", &text));
        let mut resource = resource.unwrap_or_default();
        let named = resource.iter().position(|(name, _)| name == "service.name").map(|at| resource.remove(at).1);
        let service_name = given.service_name.clone().or_else(|| self.text("OTEL_SERVICE_NAME")).or(named);
        let queue_max = self.number("OTEL_BSP_MAX_QUEUE_SIZE", 2_048, 1_000_000);
        let batch_max = self.number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512, 10_000);
        let timeout = match self.exporter("TIMEOUT").map(|text| text.parse()) {
            Some(Ok(ms @ 1..=600_000)) => ms,
            None => 10_000,
            Some(_) => {
                self.pass_over("OTEL_EXPORTER_OTLP_TIMEOUT", "is 1 to 600000 milliseconds; it counts as 10000");
                10_000
            }
        };
        Some(Settings {
            url,
            headers: headers.unwrap_or_default(),
            service_name: service_name.unwrap_or_else(|| "servo".to_owned()),
            resource,
            sampler: self.sampler(given),
            queue_max: usize::try_from(queue_max).unwrap_or(2_048),
            batch_max: usize::try_from(batch_max.min(queue_max)).unwrap_or(512),
            delay: Duration::from_millis(self.number("OTEL_BSP_SCHEDULE_DELAY", 5_000, 600_000)),
            timeout: Duration::from_millis(timeout),
        })
    }

    /// The address for traces is used as it is, the others with the path behind them.
    fn url(&mut self, given: &Given) -> Option<String> {
        let below = |base: &str| format!("{}/{PATH}", base.trim_end_matches('/'));
        let own = given.endpoint.as_deref().filter(|text| !text.is_empty()).map(below);
        let traces = || self.text("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
        let all = || self.text("OTEL_EXPORTER_OTLP_ENDPOINT").map(|base| below(&base));
        let url = own.or_else(traces).or_else(all)?;
        if is_address(&url) {
            return Some(url);
        }
        self.pass_over(
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "is an address such as http://127.0.0.1:4318; no spans are exported",
        );
        None
    }

    fn sampler(&mut self, given: &Given) -> Sampler {
        if let Some(ratio) = given.sample_ratio {
            return Sampler { follows_parent: true, ratio };
        }
        let ratio = match self.text("OTEL_TRACES_SAMPLER_ARG").map(|text| text.parse::<f64>()) {
            Some(Ok(ratio)) if (0.0..=1.0).contains(&ratio) => ratio,
            None => 1.0,
            Some(_) => {
                self.pass_over("OTEL_TRACES_SAMPLER_ARG", "is a number from 0 to 1; it counts as 1");
                1.0
            }
        };
        let Some(name) = self.text("OTEL_TRACES_SAMPLER") else { return Sampler::default() };
        Sampler::named(&name, ratio).unwrap_or_else(|| {
            let known = "is always_on, always_off or traceidratio, with or without parentbased_ before it";
            self.pass_over("OTEL_TRACES_SAMPLER", known);
            Sampler::default()
        })
    }

    /// `name=value,name=value`, with values in the form of addresses.
    fn pairs(&mut self, key: &str, text: &str) -> Vec<(String, String)> {
        let mut pairs = Vec::new();
        for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let read = pair.split_once('=').filter(|(name, _)| !name.trim().is_empty()).and_then(|(name, value)| {
                let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
                Some((name.trim().to_owned(), value.into_owned()))
            });
            match read {
                Some(pair) => pairs.push(pair),
                // What stands there may be a secret.
                None => self.pass_over(key, "has a part that is not name=value"),
            }
        }
        pairs
    }
}

/// Whether requests can go there.
pub(crate) fn is_address(url: &str) -> bool {
    reqwest::Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.host_str().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(given: &Given, variables: &[(&str, &str)]) -> (Option<Settings>, Vec<String>) {
        let owned: Vec<_> = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let (settings, wrong) = Settings::read(given, &owned);
        (settings, wrong.into_iter().map(|wrong| wrong.key).collect())
    }

    #[test]
    fn without_an_address_nothing_is_exported() {
        assert_eq!(read(&Given::default(), &[("OTEL_SERVICE_NAME", "x")]), (None, Vec::new()));
        let at = Given { endpoint: Some("http://c:4318".to_owned()), ..Given::default() };
        assert_eq!(read(&at, &[("OTEL_SDK_DISABLED", "true")]).0, None);
        assert_eq!(read(&at, &[("OTEL_TRACES_EXPORTER", "none")]).0, None);
        assert!(read(&at, &[]).0.is_some());
    }

    #[test]
    fn the_address_for_traces_is_used_as_it_is() {
        let url = |given: &Given, variables: &[(&str, &str)]| read(given, variables).0.unwrap().url;
        let all = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318/base/");
        let traces = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://t:1/in");
        assert_eq!(url(&Given::default(), &[all]), "http://c:4318/base/v1/traces");
        assert_eq!(url(&Given::default(), &[all, traces]), "http://t:1/in");
        let own = Given { endpoint: Some("https://own".to_owned()), ..Given::default() };
        assert_eq!(url(&own, &[all, traces]), "https://own/v1/traces");
        let (none, wrong) = read(&Given::default(), &[("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317")]);
        assert_eq!((none, wrong), (None, vec!["OTEL_EXPORTER_OTLP_ENDPOINT".to_owned()]));
    }

    #[test]
    fn the_variables_of_the_specification_count() {
        let variables = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Basic%20abc, x-team = blue"),
            ("OTEL_RESOURCE_ATTRIBUTES", "service.name=from-resource,deployment.environment.name=prod"),
            ("OTEL_TRACES_SAMPLER", "parentbased_traceidratio"),
            ("OTEL_TRACES_SAMPLER_ARG", "0.25"),
            ("OTEL_BSP_MAX_QUEUE_SIZE", "100"),
            ("OTEL_BSP_SCHEDULE_DELAY", "50"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "700"),
        ];
        let (settings, wrong) = read(&Given::default(), &variables);
        let settings = settings.unwrap();
        assert_eq!(wrong, Vec::<String>::new());
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(settings.headers, [pair("authorization", "Basic abc"), pair("x-team", "blue")]);
        assert_eq!((settings.service_name.as_str(), settings.resource.len()), ("from-resource", 1));
        assert_eq!(settings.sampler, Sampler { follows_parent: true, ratio: 0.25 });
        assert_eq!((settings.queue_max, settings.batch_max), (100, 100));
        assert_eq!((settings.delay.as_millis(), settings.timeout.as_millis()), (50, 700));
        assert!(!format!("{settings:?}").contains("abc"));
    }

    #[test]
    fn what_cannot_be_used_is_told_and_passed_over() {
        let variables = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "lonely"),
            ("OTEL_TRACES_SAMPLER", "xray"),
            ("OTEL_TRACES_SAMPLER_ARG", "2"),
            ("OTEL_BSP_MAX_QUEUE_SIZE", "0"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon"),
        ];
        let (settings, wrong) = read(&Given::default(), &variables);
        let settings = settings.unwrap();
        assert_eq!((settings.sampler, settings.queue_max), (Sampler::default(), 2_048));
        assert_eq!(wrong.len(), variables.len() - 1, "{wrong:?}");
    }
}
