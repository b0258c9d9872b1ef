//! Certificates for a cluster with TLS, made by the `openssl` program. The suites over the real binary use this file, too.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::cluster::{Cluster, OWNER, own};

/// The kinds of certificates. The servers' are for `localhost`, and for no address.
const KINDS: &str = "[req]
distinguished_name = name
prompt = no
[name]
CN = servo
[authority]
basicConstraints = critical,CA:TRUE
[server]
basicConstraints = CA:FALSE
subjectAltName = DNS:localhost
[client]
basicConstraints = CA:FALSE
extendedKeyUsage = clientAuth
[itself]
basicConstraints = CA:TRUE
subjectAltName = DNS:localhost
";

pub(crate) struct Certificates {
    folder: tempfile::TempDir,
}

impl Certificates {
    /// Two authorities, `ours` and `theirs`, and what each of them, or nobody, has signed.
    pub(crate) fn make() -> Self {
        let made = Self { folder: tempfile::tempdir().expect("a temporary folder") };
        std::fs::write(made.path("kinds.cnf"), KINDS).expect("a file");
        for (name, kind) in [("ours", "authority"), ("theirs", "authority"), ("itself", "itself")] {
            made.openssl(&["req", "-x509", "-extensions", kind, "-days", "2"], name, "servo", "pem");
        }
        for (name, kind, signer, days) in [
            ("server", "server", "ours", "2"),
            // Its end is a day before its beginning.
            ("late", "server", "ours", "-1"),
            ("client", "client", "ours", "2"),
            ("stranger", "client", "theirs", "2"),
        ] {
            made.openssl(&["req"], name, OWNER, "csr");
            let file = |name: &str, ending: &str| made.path(&format!("{name}.{ending}"));
            let mut sign = Command::new("openssl");
            sign.args(["x509", "-req", "-days", days, "-CAcreateserial", "-extensions", kind]);
            sign.arg("-extfile").arg(made.path("kinds.cnf"));
            sign.arg("-CA").arg(file(signer, "pem")).arg("-CAkey").arg(file(signer, "key"));
            finish(sign.arg("-in").arg(file(name, "csr")).arg("-out").arg(file(name, "pem")));
        }
        made
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// As it stands in a URL.
    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).to_str().expect("utf-8").to_owned()
    }

    /// A new key, and a request or a certificate for it.
    fn openssl(&self, arguments: &[&str], name: &str, subject: &str, ending: &str) {
        let mut command = Command::new("openssl");
        command.args(arguments).args(["-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]);
        command.args(["-subj", &format!("/CN={subject}")]).arg("-config").arg(self.path("kinds.cnf"));
        command.arg("-keyout").arg(self.path(&format!("{name}.key")));
        finish(command.arg("-out").arg(self.path(&format!("{name}.{ending}"))));
    }

    /// A cluster that lets nobody in without TLS, who knows clients by `ours`.
    pub(crate) fn cluster(&self) -> Cluster {
        let cluster = Cluster::make();
        cluster.set("ssl = on\nssl_cert_file = 'server.crt'\nssl_key_file = 'server.key'\nssl_ca_file = 'root.crt'\n");
        install(&self.path("ours.pem"), &cluster.data().join("root.crt"));
        self.show(&cluster, "server");
        let rules = "local all all trust\nhostssl with_certificate all 127.0.0.1/32 cert\n\
                     hostssl with_password all 127.0.0.1/32 scram-sha-256\nhostssl all all 127.0.0.1/32 trust\n";
        std::fs::write(cluster.data().join("pg_hba.conf"), rules).expect("rules");
        cluster.ctl("start", "fast");
        cluster
    }

    /// The certificate that a server shows from its next start on.
    pub(crate) fn show(&self, cluster: &Cluster, name: &str) {
        for (ending, file) in [("pem", "server.crt"), ("key", "server.key")] {
            install(&self.path(&format!("{name}.{ending}")), &cluster.data().join(file));
        }
    }
}

/// Postgres takes no key that others can read.
fn install(from: &Path, to: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::copy(from, to).expect("a copy");
    std::fs::set_permissions(to, std::fs::Permissions::from_mode(0o600)).expect("rights");
    own(to);
}

fn finish(command: &mut Command) {
    let output = command.output().expect("openssl runs: install it");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
