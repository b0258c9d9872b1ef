//! Encrypted connections, against servers with certificates of a test's own: each mode does what libpq says of it, and what
//! does not come about says why.

use servo_store::testkit::fixtures::{run_id, start_append, tenant};
use servo_store::{AdminStore, LogStore, Result};
use servo_store_postgres::PostgresStore;

use crate::certificates::Certificates;
use crate::cluster::{Cluster, OWNER};
use crate::support::{config, run};

/// Connects, writes, and says how many of the connections were encrypted and how many were not.
async fn open(cluster: &Cluster, database: &str, url: &str) -> Result<(String, String)> {
    let mut config = config(url);
    config.hints = true;
    let store = PostgresStore::connect(config).await?;
    store.append(start_append(&run_id(&format!("inv_{}", uuid())), &tenant("acme"))).await.unwrap();
    let count = |ssl: &str| {
        let sql = format!(
            "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
             WHERE application_name = 'servo' AND datname = '{database}' AND ssl = {ssl}"
        );
        cluster.psql("postgres", &sql)
    };
    let counts = (count("true"), count("false"));
    store.close().await.unwrap();
    Ok(counts)
}

fn uuid() -> String {
    servo_store::testkit::fixtures::unique().to_string()
}

/// The server is reached by its address and called by a name, as the URL says.
fn url(cluster: &Cluster, user: &str, host: &str, database: &str, query: &str) -> String {
    let port = cluster.port();
    format!("postgres://{user}@{host}:{port}/{database}?hostaddr=127.0.0.1&{query}")
}

/// Every mode, each with what it must refuse.
#[test]
fn each_mode_verifies_what_it_says() {
    run(async {
        let certificates = Certificates::make();
        let cluster = certificates.cluster();
        cluster.psql("postgres", "CREATE DATABASE servo");
        let root = |name: &str| format!("sslrootcert={}", certificates.text(&format!("{name}.pem")));
        let (ours, theirs) = (root("ours"), root("theirs"));
        let untrusted = Some("is not trusted: name the certificate of who signed it by sslrootcert");
        let named = Some("for another name");
        for (host, query, refused) in [
            ("localhost", String::new(), None),
            ("localhost", "sslmode=prefer".to_owned(), None),
            ("localhost", "sslmode=require".to_owned(), None),
            ("127.0.0.1", "sslmode=require".to_owned(), None),
            ("localhost", format!("sslmode=require&{ours}"), None),
            ("127.0.0.1", format!("sslmode=require&{ours}"), None),
            ("localhost", format!("sslmode=require&{theirs}"), untrusted),
            ("127.0.0.1", format!("sslmode=verify-ca&{ours}"), None),
            ("localhost", format!("sslmode=verify-ca&{theirs}"), untrusted),
            ("localhost", format!("sslmode=verify-full&{ours}"), None),
            ("127.0.0.1", format!("sslmode=verify-full&{ours}"), named),
            ("elsewhere.example", format!("sslmode=verify-full&{ours}"), named),
            ("localhost", format!("sslmode=verify-full&{theirs}"), untrusted),
            // No root of the system has signed it, or the system has none.
            ("localhost", "sslmode=verify-full".to_owned(), Some("sslrootcert")),
            ("localhost", "sslrootcert=system".to_owned(), Some("sslrootcert")),
            ("localhost", "sslmode=disable".to_owned(), Some("say sslmode=verify-full")),
        ] {
            let opened = open(&cluster, "servo", &url(&cluster, OWNER, host, "servo", &query)).await;
            match (opened, refused) {
                (Ok((encrypted, plain)), None) => {
                    assert!(encrypted.parse::<u32>().unwrap() > 0, "{host} {query}: nobody is connected");
                    assert_eq!(plain, "0", "{host} {query}");
                }
                (Err(error), Some(words)) => assert!(error.to_string().contains(words), "{host} {query}: {error}"),
                (opened, _) => panic!("{host} {query}: {opened:?}, expected {refused:?}"),
            }
        }
    });
}

/// The server knows a client by its certificate, or by a password whose proof is bound to the server's.
#[test]
fn clients_show_certificates_and_bind_passwords_to_the_connection() {
    run(async {
        let certificates = Certificates::make();
        let cluster = certificates.cluster();
        cluster.psql("postgres", "CREATE DATABASE with_certificate");
        cluster.psql("postgres", "CREATE DATABASE with_password");
        cluster.psql("postgres", "ALTER ROLE servo_owner PASSWORD 'hunter2'");
        let file = |name: &str| certificates.text(name);
        let pair =
            |name: &str| format!("sslcert={}&sslkey={}", file(&format!("{name}.pem")), file(&format!("{name}.key")));
        let verified = format!("sslmode=verify-full&sslrootcert={}", file("ours.pem"));
        for (query, refused) in [
            (pair("client"), None),
            (String::new(), Some("wants a client certificate (sslcert, sslkey)")),
            (pair("stranger"), Some("does not take this program's certificate")),
            (format!("sslcert={}&sslkey={}", file("client.pem"), file("stranger.key")), Some("is not the key of")),
        ] {
            let url = url(&cluster, OWNER, "localhost", "with_certificate", &format!("{verified}&{query}"));
            let opened = open(&cluster, "with_certificate", &url).await;
            match (&opened, refused) {
                (Ok(_), None) => {}
                (Err(error), Some(words)) => assert!(error.to_string().contains(words), "{query}: {error}"),
                _ => panic!("{query}: {opened:?}, expected {refused:?}"),
            }
        }
        for (password, query, refused) in [
            ("hunter2", "sslmode=require&channel_binding=require", None),
            ("hunter2", "sslmode=require", None),
            ("hunter3", "sslmode=require", Some("look at the user and the password")),
        ] {
            let url = url(&cluster, &format!("{OWNER}:{password}"), "localhost", "with_password", query);
            let opened = open(&cluster, "with_password", &url).await;
            assert!(!format!("{opened:?}").contains("hunter"), "{opened:?}");
            match (&opened, refused) {
                (Ok(_), None) => {}
                (Err(error), Some(words)) => assert!(error.to_string().contains(words), "{query}: {error}"),
                _ => panic!("{query}: {opened:?}, expected {refused:?}"),
            }
        }
    });
}

/// As guides make them: one file that is its own authority. And one whose time is over.
#[test]
fn a_certificate_that_signed_itself_is_trusted_by_itself_alone() {
    run(async {
        let certificates = Certificates::make();
        let cluster = certificates.cluster();
        cluster.psql("postgres", "CREATE DATABASE servo");
        let (itself, ours) = (certificates.text("itself.pem"), certificates.text("ours.pem"));
        for (shown, host, root, refused) in [
            ("itself", "localhost", &itself, None),
            ("itself", "127.0.0.1", &itself, Some("for another name")),
            ("itself", "localhost", &ours, Some("is not trusted")),
            ("late", "localhost", &ours, Some("has expired or is not valid yet")),
        ] {
            certificates.show(&cluster, shown);
            cluster.ctl("restart", "fast");
            let query = format!("sslmode=verify-full&sslrootcert={root}");
            let opened = open(&cluster, "servo", &url(&cluster, OWNER, host, "servo", &query)).await;
            match (&opened, refused) {
                (Ok(_), None) => {}
                (Err(error), Some(words)) => assert!(error.to_string().contains(words), "{shown}: {error}"),
                _ => panic!("{shown} {host}: {opened:?}, expected {refused:?}"),
            }
        }
    });
}

/// A server without TLS: `prefer` goes on in the clear, everything stronger says what to do.
#[test]
fn a_server_without_tls_is_refused_where_it_is_required() {
    run(async {
        let cluster = Cluster::start();
        let url = cluster.url();
        for query in ["sslmode=require", "sslmode=verify-full&sslrootcert=system"] {
            let error = PostgresStore::connect(config(&format!("{url}?{query}"))).await.unwrap_err().to_string();
            let system_has_none = error.contains("this system has no root certificates");
            assert!(error.contains("does not speak TLS: set ssl = on") || system_has_none, "{query}: {error}");
        }
        for query in ["", "?sslmode=prefer", "?sslmode=disable"] {
            let store = PostgresStore::connect(config(&format!("{url}{query}"))).await.unwrap();
            store.close().await.unwrap();
        }
    });
}
