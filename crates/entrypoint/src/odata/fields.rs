//! The fields that a query may name, per resource. None of them can be absent, so that every store agrees on what `ne` and
//! `not` find.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldKind {
    /// Compared by the bytes of its UTF-8.
    Text,
    /// Compared with `eq`, `ne` and `in` alone, and only with these words.
    Word(&'static [&'static str]),
    Time,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    pub name: &'static str,
    pub kind: FieldKind,
    /// Whether a list can be ordered by it.
    pub sortable: bool,
}

/// What a list is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resource {
    pub name: &'static str,
    pub fields: &'static [Field],
    /// Breaks ties in every order.
    pub id: &'static str,
}

impl Resource {
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    pub(super) fn names(&self, sortable: bool) -> String {
        let names: Vec<_> =
            self.fields.iter().filter(|field| field.sortable || !sortable).map(|field| field.name).collect();
        names.join(", ")
    }
}

const fn text(name: &'static str) -> Field {
    Field { name, kind: FieldKind::Text, sortable: true }
}

const fn time(name: &'static str) -> Field {
    Field { name, kind: FieldKind::Time, sortable: true }
}

const fn word(name: &'static str, words: &'static [&'static str]) -> Field {
    Field { name, kind: FieldKind::Word(words), sortable: true }
}

pub const ENTRYPOINTS: Resource = Resource {
    name: "entrypoints",
    fields: &[
        text("id"),
        text("entrypoint_id"),
        text("tenant_id"),
        word("status", &["draft", "active", "deprecated", "disabled", "archived"]),
        word("owner_type", &["user", "tenant", "system"]),
        text("runtime"),
        text("version"),
        text("title"),
        time("created_at"),
        time("updated_at"),
    ],
    id: "id",
};

pub const INVOCATIONS: Resource = Resource {
    name: "invocations",
    fields: &[
        text("invocation_id"),
        text("id"),
        text("entrypoint_id"),
        text("tenant_id"),
        word(
            "status",
            &[
                "queued",
                "running",
                "suspended",
                "succeeded",
                "failed",
                "canceled",
                "compensating",
                "compensated",
                "dead_lettered",
            ],
        ),
        word("mode", &["sync", "async"]),
        text("correlation_id"),
        time("created_at"),
        time("updated_at"),
    ],
    id: "invocation_id",
};
