//! Whom the server takes the caller for, and where the settings came from that led there.

use serde::Serialize;
use servo_model::Role;
use servo_wire::v1::WhoAmI;

use super::{Style, View};
use crate::output::style::clean;
use crate::output::table::fields;
use crate::settings::{Setting, Settings};

/// What the server said, and what this program was told.
#[derive(Debug)]
pub(crate) struct Caller<'a> {
    pub(crate) who: &'a WhoAmI,
    pub(crate) settings: &'a Settings,
}

impl View for Caller<'_> {
    fn table(&self, _: &Style) -> String {
        let who = clean(&format!("{} of tenant {}", self.who.subject, self.who.tenant_id));
        let roles = self.who.roles.iter().map(|role: &Role| role.as_str()).collect::<Vec<_>>().join(", ");
        let permissions = clean(&self.who.permissions.join(", "));
        format!("{who}\nroles: {roles}\npermissions: {permissions}\n\n{}", origins(self.settings))
    }
}

/// One line per setting. A key is never shown.
pub(crate) fn origins(settings: &Settings) -> String {
    let line = |setting: &Setting<String>| clean(&format!("{} (from {})", setting.value, setting.from));
    let key = |token: &Setting<String>| clean(&format!("given (from {})", token.from));
    let ca_file = settings.ca_file.as_ref();
    let ca_file = ca_file.map(|file| Setting { value: file.value.display().to_string(), from: file.from.clone() });
    fields(&[
        ("Server", Some(line(&settings.server))),
        ("Key", Some(settings.token.as_ref().map_or_else(|| "none".to_owned(), key))),
        ("Certificates", ca_file.as_ref().map(line)),
        ("Profile", Some(settings.profile.as_ref().map_or_else(|| "none".to_owned(), line))),
    ])
}

/// The same for programs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Origins {
    server: Told,
    token: Option<Told>,
    ca_file: Option<Told>,
    profile: Option<Told>,
}

#[derive(Debug, Serialize)]
struct Told {
    /// Left out of a key.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    from: String,
}

impl Origins {
    pub(crate) fn of(settings: &Settings) -> Self {
        let told =
            |setting: &Setting<String>| Told { value: Some(setting.value.clone()), from: setting.from.to_string() };
        Self {
            server: told(&settings.server),
            token: settings.token.as_ref().map(|token| Told { value: None, from: token.from.to_string() }),
            ca_file: settings
                .ca_file
                .as_ref()
                .map(|file| Told { value: Some(file.value.display().to_string()), from: file.from.to_string() }),
            profile: settings.profile.as_ref().map(told),
        }
    }
}
