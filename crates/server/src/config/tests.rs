//! Reading configurations, and refusing those that are wrong.

use super::*;

fn load(text: &str, variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
    Config::load(text, variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
}

#[test]
fn nothing_gives_the_defaults() {
    assert_eq!(load("", &[]).unwrap(), Config::default());
    assert_eq!(load("", &[("SERVO_SERVER", "http://x"), ("PATH", "/bin")]).unwrap(), Config::default());
}

#[test]
fn what_is_printed_is_read_back() {
    let config = Config { plan_sources: vec!["file:///srv/plans/".to_owned()], ..Config::default() };
    assert_eq!(load(&config.print(), &[]).unwrap(), config);
}

#[test]
fn the_example_file_is_the_default_configuration() {
    let example = include_str!("../../../../servo.toml.example");
    assert_eq!(load(example, &[]).unwrap(), Config::default());
}

#[test]
fn variables_override_the_file() {
    let text = "[server]\nbind = \"127.0.0.1:1\"\n[runtime]\npoll_ms = 5\n";
    let config = load(
        text,
        &[
            ("SERVO__SERVER__BIND", "[::1]:9000"),
            ("SERVO__STORE__PATH", "/data"),
            ("SERVO__ENGINES__MOCK", "true"),
            ("SERVO__RUNTIME__STATE_STORE__WRITELATENCYBUDGETMS", "7"),
            ("SERVO__PLAN_SOURCES", r#"["file:///a/"]"#),
            ("SERVO__LOG__FORMAT", "json"),
        ],
    )
    .unwrap();
    assert_eq!(config.server.bind.port(), 9000);
    assert_eq!(config.store, StoreConfig::Sqlite { path: PathBuf::from("/data") });
    assert!(config.engines.mock);
    assert_eq!(config.runtime.state_store.write_latency_budget_ms, 7);
    assert_eq!(config.runtime.poll_ms, 5);
    assert_eq!(config.plan_sources, ["file:///a/"]);
    assert_eq!(config.log.format, LogFormat::Json);
    let config = load("", &[("SERVO__STORE__KIND", "postgres"), ("SERVO__STORE__URL", "postgres://u:p@h/d")]).unwrap();
    assert_eq!(config.store, StoreConfig::Postgres { url: "postgres://u:p@h/d".to_owned() });
}

#[test]
fn errors_name_the_key_and_what_is_allowed() {
    let digest = Digest::of(b"key");
    let access_key =
        |id: &str| format!("[[auth.access_keys]]\n{id}\nsecret = \"short\"\ntenant = \"acme\"\nroles = [\"viewer\"]");
    let key = |rest: &str| format!("[[auth.keys]]\nname = \"ci\"\nsha256 = \"{digest}\"\n{rest}");
    for (text, variables, wanted) in [
        ("[server]\nbindd = 1", &[][..], "bindd"),
        ("[telemetry]\notlp_endpoint = \"collector:4317\"", &[], "telemetry.otlp_endpoint"),
        ("[telemetry]\nsample_ratio = 1.5", &[], "telemetry.sample_ratio"),
        ("[runtime.dispatch.default]\nweight = 0", &[], "runtime.dispatch.default.weight: is 1 to 100"),
        ("[runtime.dispatch.tenants.acme]\nin_flight_max = 0", &[], "runtime.dispatch.tenants.acme.in_flight_max"),
        ("[server]\nbind = \"localhost\"", &[], "server.bind"),
        ("[runtime.authority]\nlease_ms = 0", &[], "runtime.authority.lease_ms: is 100 to 86400000"),
        ("[runtime.dispatch]\nqueue_lease_ms = 1", &[], "runtime.dispatch.queue_lease_ms: is 100 to"),
        ("[server]\nrequests_max = 0", &[], "server.requests_max: is 1 to"),
        ("[server]\nrequests_per_tenant_max = 0", &[], "server.requests_per_tenant_max: is at least 1"),
        ("[server]\nbodies_bytes_max = 0", &[], "server.bodies_bytes_max: is 1 to"),
        ("[server]\nimports_max = 0", &[], "server.imports_max: is 1 to"),
        ("[server]\nhosts = [\"https://servo.example.com\"]", &[], "server.hosts[0]: is a host such as"),
        ("[server.tls]\ncert = \"a\"", &[], "key"),
        ("[store]\nkind = \"mysql\"", &[], "sqlite"),
        ("[log]\nlevel = \"loud\"", &[], "log.level"),
        ("[runtime.retention]\nfinished_runs_days = \"x\"", &[], "runtime.retention.finished_runs_days"),
        ("[server]\nbind = \"0.0.0.0:8700\"", &[], "add [[auth.keys]]"),
        ("plan_sources = [\"ftp://x/\"]", &[], "plan_sources.0"),
        (
            "[serverless]\negress_allow_nets = [\"10.1\"]",
            &[],
            "serverless.egress_allow_nets[0]: \"10.1\" is no range of addresses; write it as 10.0.0.0/8",
        ),
        (
            "[functions]\npush_allow_nets = [\"10.0.0.0/33\"]",
            &[],
            "functions.push_allow_nets[0]: \"10.0.0.0/33\" is no range",
        ),
        ("[serverless]\nmax_memory_per_execution_mb = 0", &[], "serverless.max_memory_per_execution_mb: is 1 to 10240"),
        ("[serverless]\nmax_memory_per_execution_mb = 10241", &[], "serverless.max_memory_per_execution_mb"),
        ("[serverless]\nmax_execution_duration_seconds = 31622401", &[], "serverless.max_execution_duration_seconds"),
        ("[serverless]\nmax_cpu_per_execution = nan", &[], "serverless.max_cpu_per_execution"),
        ("[runtime.state_store]\nfailOpenForEventClass = [\"Banana\"]", &[], "`Banana` cannot fail open"),
        ("[runtime.state_store]\nfailOpenForEventClass = [\"StepCompleted\"]", &[], "`StepCompleted` cannot"),
        ("[runtime.state_store]\nneverFailOpen = [\"stepFailed\"]", &[], "there is no event `stepFailed`"),
        ("[runtime.place]\nregion = \"x y\"", &[], "runtime.place.region"),
        ("[runtime.place]\nregion = \"\"", &[], "runtime.place.region"),
        ("[runtime.place]\naccount = \"1234\"", &[], "runtime.place.account: has 12 digits"),
        ("no toml", &[], "line 1"),
        ("[bus]\nnats_url = \"ws://bus\"", &[], "bus.nats_url: begins with nats:// or tls://"),
        ("[bus]\ntoken_file = \"/t\"", &[], "bus.token_file: is of no use without bus.nats_url"),
        ("", &[("SERVO__SERVER__PORT", "1")], "port"),
        ("", &[("SERVO__SERVER__BIND__X", "1")], "server.bind"),
        ("", &[("SERVO__", "1")], "SERVO__SECTION__KEY"),
        ("[server]\nbind = \"127.0.0.1:1\"", &[("SERVO__SERVER__BIND__X", "1")], "no section"),
        (&key("tenant = \"_system\"\nroles = [\"viewer\"]"), &[], "auth.keys[0].tenant"),
        (&key("tenant = \"acme\"\nroles = []"), &[], "auth.keys[0].roles"),
        (&key("tenant = \"acme\"\nroles = [\"root\"]"), &[], "platform-admin"),
        (&key("tenant = \"a b\"\nroles = [\"viewer\"]"), &[], "tenant"),
        (&access_key("id = \"short\""), &[], "auth.access_keys[0].id"),
        (&access_key("id = \"AKIDEXAMPLE000000\""), &[], "auth.access_keys[0].secret"),
    ] {
        let error = load(text, variables).unwrap_err().to_string();
        assert!(error.contains(wanted), "{text} {variables:?} gave: {error}");
    }
}

/// What is inside may be called by push where everybody is on this machine, or where the operator says so.
#[test]
fn functions_inside_are_called_from_loopback_or_when_allowed() {
    let allows = |text: &str, loopback: bool, address: &str| {
        let allowed = load(text, &[]).unwrap().functions.push_allowed(loopback);
        allowed.nets.iter().any(|net| net.contains(address.parse().unwrap()))
    };
    for address in ["127.0.0.1", "::1", "10.1.2.3", "192.168.1.1", "172.16.0.1", "fd12::1"] {
        assert!(allows("", true, address) && !allows("", false, address), "{address}");
    }
    assert!(!allows("", true, "169.254.169.254"));
    let some = "[functions]\npush_allow_nets = [\"10.1.0.0/16\"]";
    assert!(allows(some, false, "10.1.2.3") && !allows(some, false, "10.2.0.1") && !allows(some, true, "127.0.0.1"));
    assert!(!allows("[functions]\npush_allow_nets = []", true, "127.0.0.1"));
}

/// A line that cannot be read may hold a password.
#[test]
fn errors_do_not_quote_the_file() {
    for text in
        ["[bus]\nnats_url = \"nats://u:hunter2@bus", "[bus]\nnats_url = nats://u:hunter2@bus\n", "[bus\nhunter2"]
    {
        let error = load(text, &[]).unwrap_err().to_string();
        assert!(!error.contains("hunter2") && error.contains("line "), "{error}");
    }
}

#[test]
fn secrets_are_masked_when_printed() {
    let digest = Digest::of(b"key");
    let text = format!(
        "[store]\nkind = \"postgres\"\nurl = \"postgres://servo:hunter2@db/servo\"\n[bus]\nnats_url = \"nats://u:swordfish@bus\"\n\
         [[auth.keys]]\nname = \"ci\"\ntenant = \"acme\"\nroles = [\"operator\"]\nsha256 = \"{digest}\"\n\
         [[auth.access_keys]]\nid = \"AKIDEXAMPLE000000\"\nsecret = \"correct horse battery staple\"\ntenant = \"acme\"\n\
         roles = [\"operator\"]\n"
    );
    let config = load(&text, &[]).unwrap();
    for printed in [config.print(), config.print_json().to_string()] {
        for secret in ["hunter2", "swordfish", "correct horse", &digest.to_string()] {
            assert!(!printed.contains(secret), "{printed}");
        }
        assert!(printed.contains("postgres://servo:***@db/servo"), "{printed}");
    }
}
