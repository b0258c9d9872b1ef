//! The fields that a query may name, per resource, with what may be asked of each: what is refused, what a refusal offers instead and
//! what the lists must serve are this one table. None of them can be absent, so that every store agrees on what `ne` and `not` find.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldKind {
    /// Compared by the bytes of its UTF-8.
    Text,
    /// A text that is compared with `eq`, `ne` and `in` alone, as it is looked up.
    Name,
    /// Compared with `eq`, `ne` and `in` alone, and only with these words.
    Word(&'static [&'static str]),
    Time,
}

impl FieldKind {
    /// Whether `lt`, `le`, `gt` and `ge` mean something.
    pub fn is_ordered(self) -> bool {
        matches!(self, FieldKind::Text | FieldKind::Time)
    }
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

/// The same field in a list that no index gives in its order.
const fn unsorted(field: Field) -> Field {
    Field { sortable: false, ..field }
}

const fn name(name: &'static str) -> Field {
    Field { name, kind: FieldKind::Name, sortable: true }
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

/// Invocations have no `updated_at`: what changed when is in their timeline.
pub const INVOCATIONS: Resource = Resource {
    name: "invocations",
    fields: &[
        text("invocation_id"),
        text("id"),
        unsorted(name("entrypoint_id")),
        unsorted(name("tenant_id")),
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
        unsorted(word("mode", &["sync", "async"])),
        unsorted(text("correlation_id")),
        time("created_at"),
    ],
    id: "invocation_id",
};
