//! Profiles without their keys.

use serde::Serialize;

use super::{Style, View};
use crate::output::table::{Cell, table};
use crate::profiles::Profiles;

#[derive(Debug, Clone, Serialize)]
pub(crate) struct ProfileList {
    items: Vec<ProfileItem>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct ProfileItem {
    name: String,
    server: String,
    has_token: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    ca_file: Option<String>,
    is_current: bool,
}

impl ProfileList {
    pub(crate) fn of(known: &Profiles) -> Self {
        let item = |(name, profile): (&String, &crate::profiles::Profile)| ProfileItem {
            name: name.clone(),
            server: profile.server.clone(),
            has_token: profile.token.is_some(),
            ca_file: profile.ca_file.as_ref().map(|path| path.display().to_string()),
            is_current: known.current.as_ref() == Some(name),
        };
        Self { items: known.profiles.iter().map(item).collect() }
    }
}

impl View for ProfileList {
    const ITEMS: Option<&'static str> = Some("items");

    fn table(&self, style: &Style) -> String {
        let row = |item: &ProfileItem| {
            vec![
                Cell::whole(&item.name),
                Cell::whole(&item.server),
                Cell::new(if item.has_token { "stored" } else { "" }),
                Cell::from(item.ca_file.clone()),
                Cell::new(if item.is_current { "in use" } else { "" }),
            ]
        };
        let rows: Vec<_> = self.items.iter().map(row).collect();
        table(style.paint(), &["PROFILE", "SERVER", "KEY", "CERTIFICATES", "NOTE"], &rows)
    }

    fn ids(&self) -> Vec<String> {
        self.items.iter().map(|item| item.name.clone()).collect()
    }
}
