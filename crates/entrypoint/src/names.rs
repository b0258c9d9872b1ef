//! Short names: what people type in place of an address.
//!
//! `vendor.app.tax` stands for every address of that name right below the function and the workflow type, in all its versions;
//! `vendor.app.tax.v2` for its second version; `…workflow.v1~vendor.app.tax` for workflows only. Which of them is meant is decided
//! where they are looked up: a call means the highest active version. This looks nothing up.

use std::fmt;

use servo_model::invocation::EntrypointKind;

use crate::gts;

/// Names that a refusal proposes.
pub const PROPOSED_MAX: usize = 3;
/// Longer texts are compared by their beginning: nobody types them.
const COMPARED_CHARS_MAX: usize = 128;

/// The version that an address ends with: `v2`, `v1.12`. Ordered as versions are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct NameVersion {
    pub major: u32,
    pub minor: Option<u32>,
}

impl fmt::Display for NameVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.minor {
            Some(minor) => write!(f, "v{}.{minor}", self.major),
            None => write!(f, "v{}", self.major),
        }
    }
}

/// The part of an address that is its own, with its kind: how people know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Own<'a> {
    pub kind: EntrypointKind,
    pub name: &'a str,
    pub version: NameVersion,
}

impl<'a> Own<'a> {
    /// `None` for what is no address, or derives through further types: those have no short name.
    pub fn of(address: &'a str) -> Option<Self> {
        let kind = gts::Address::parse(address).ok()?.kind;
        let (name, version) = split(address.strip_prefix(gts::type_of(kind))?.strip_suffix('~')?);
        Some(Self { kind, name, version: version.filter(|_| !name.contains('~'))? })
    }
}

impl fmt::Display for Own<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.name, self.version)
    }
}

/// What stands in place of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShortName<'a> {
    /// The kind that the caller named with it.
    pub kind: Option<EntrypointKind>,
    pub name: &'a str,
    pub version: Option<NameVersion>,
}

impl<'a> ShortName<'a> {
    /// `None` for an address. Whatever else people type is a name, if only one that nothing has.
    pub fn parse(text: &'a str) -> Option<Self> {
        let of_kind = |kind| {
            let own = text.strip_prefix(gts::type_of(kind))?;
            (!own.is_empty() && !own.contains('~')).then_some((Some(kind), own))
        };
        let (kind, own) = of_kind(EntrypointKind::Function)
            .or_else(|| of_kind(EntrypointKind::Workflow))
            .or_else(|| (!text.starts_with("gts.")).then(|| (None, text.trim_end_matches('~'))))?;
        let (name, version) = split(own);
        Some(Self { kind, name, version })
    }

    /// What the addresses that it may stand for begin with, kind by kind.
    pub fn prefixes(&self) -> impl Iterator<Item = String> + '_ {
        let kinds = [EntrypointKind::Function, EntrypointKind::Workflow].into_iter();
        let kinds = kinds.filter(|kind| self.kind.is_none_or(|asked| asked == *kind));
        kinds.map(|kind| format!("{}{}.v", gts::type_of(kind), self.name))
    }

    pub fn is_of(&self, own: &Own<'_>) -> bool {
        self.name == own.name
            && self.kind.is_none_or(|kind| kind == own.kind)
            && self.version.is_none_or(|version| version == own.version)
    }
}

impl fmt::Display for ShortName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.version {
            Some(version) => write!(f, "{}.{version}", self.name),
            None => f.write_str(self.name),
        }
    }
}

/// How the next version of an address is called, as the end of a sentence about it.
pub fn next_of(address: &str) -> String {
    let Some(own) = Own::of(address) else { return String::new() };
    let version = match own.version {
        NameVersion { minor: Some(minor), major } => NameVersion { major, minor: Some(minor.saturating_add(1)) },
        NameVersion { minor: None, major } => NameVersion { major: major.saturating_add(1), minor: None },
    };
    format!(", such as `{}`", Own { version, ..own })
}

/// A name and the version behind it, if there is one.
fn split(own: &str) -> (&str, Option<NameVersion>) {
    let number = |text: &str| {
        let canonical = text == "0" || !text.starts_with('0');
        let digits = (1..=9).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        (canonical && digits).then(|| text.parse::<u32>().ok()).flatten()
    };
    let version = |text: &str| text.strip_prefix('v').and_then(number);
    let Some((name, last)) = own.rsplit_once('.') else { return (own, None) };
    if let Some(major) = version(last) {
        return (name, Some(NameVersion { major, minor: None }));
    }
    if let (Some(minor), Some((name, before))) = (number(last), name.rsplit_once('.'))
        && let Some(major) = version(before)
    {
        return (name, Some(NameVersion { major, minor: Some(minor) }));
    }
    (own, None)
}

/// Of the names that there are those that may have been meant, nearest first.
pub fn near<'n>(asked: &str, names: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
    let asked: Vec<char> = asked.to_lowercase().chars().take(COMPARED_CHARS_MAX).collect();
    // A letter or two; of a very short name nearly everything would be near.
    let most = match asked.len() {
        0..=2 => 0,
        3..=5 => 1,
        _ => 2,
    };
    let last = |name: &[char]| name.rsplit(|c| *c == '.').next().map(<[char]>::to_vec).unwrap_or_default();
    let mut found: Vec<(usize, &str)> = Vec::new();
    for name in names {
        let letters: Vec<char> = name.to_lowercase().chars().take(COMPARED_CHARS_MAX).collect();
        let whole = distance(&asked, &letters, most);
        // `tax` and `taxx` for `vendor.app.tax`.
        let part = (!asked.contains(&'.')).then(|| distance(&asked, &last(&letters), most)).flatten();
        // `tax` typed below a wrong vendor.
        let same = (last(&asked).len() > 2 && last(&asked) == last(&letters)).then_some(most + 1);
        let nearest = [whole, part.map(|far| far + 1), same].into_iter().flatten().min();
        if let Some(far) = nearest.filter(|_| found.iter().all(|(_, known)| *known != name)) {
            found.push((far, name));
        }
    }
    found.sort_unstable();
    found.truncate(PROPOSED_MAX);
    found.into_iter().map(|(_, name)| name).collect()
}

/// How many letters are to be put in, taken out, changed or exchanged with their neighbour; `None` for more than `most`.
fn distance(one: &[char], other: &[char], most: usize) -> Option<usize> {
    if one.len().abs_diff(other.len()) > most {
        return None;
    }
    let width = other.len() + 1;
    let mut rows = vec![(0..width).collect::<Vec<usize>>()];
    for (i, a) in one.iter().enumerate() {
        let mut row = vec![i + 1; width];
        for (j, b) in other.iter().enumerate() {
            let changed = rows[i][j] + usize::from(a != b);
            let mut cost = changed.min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == other[j - 1] && one[i - 1] == *b {
                cost = cost.min(rows[i - 1][j - 1] + 1);
            }
            row[j + 1] = cost;
        }
        rows.push(row);
    }
    rows.last().and_then(|row| row.last()).copied().filter(|far| *far <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(major: u32, minor: Option<u32>) -> Option<NameVersion> {
        Some(NameVersion { major, minor })
    }

    #[test]
    fn a_name_is_told_from_an_address() {
        let workflow = format!("{}vendor.app.tax", gts::WORKFLOW);
        let minor = format!("{}vendor.app.tax.v1.2", gts::FUNCTION);
        for (text, kind, name, found) in [
            ("vendor.app.tax", None, "vendor.app.tax", None),
            ("vendor.app.tax~", None, "vendor.app.tax", None),
            ("vendor.app.tax.v2", None, "vendor.app.tax", version(2, None)),
            ("vendor.app.tax.v1.12~", None, "vendor.app.tax", version(1, Some(12))),
            ("vendor.app.v1.tax", None, "vendor.app.v1.tax", None),
            ("vendor.app.v01", None, "vendor.app.v01", None),
            ("vendor.app.vat", None, "vendor.app.vat", None),
            ("tax", None, "tax", None),
            ("", None, "", None),
            (workflow.as_str(), Some(EntrypointKind::Workflow), "vendor.app.tax", None),
            (minor.as_str(), Some(EntrypointKind::Function), "vendor.app.tax", version(1, Some(2))),
        ] {
            assert_eq!(ShortName::parse(text), Some(ShortName { kind, name, version: found }), "{text}");
        }
        let deep = format!("{}vendor.app.base.v1~vendor.app.tax.v1~", gts::FUNCTION);
        for text in
            [format!("{minor}~"), deep, "gts.a.b.c.v1~".to_owned(), "gts.none".to_owned(), gts::WORKFLOW.to_owned()]
        {
            assert_eq!(ShortName::parse(&text), None, "{text}");
        }
    }

    #[test]
    fn a_name_stands_for_its_own_versions_only() {
        let address = |kind: &str, own: &str| format!("{kind}{own}~");
        let of = |text: &str, name: &str| Own::of(text).is_some_and(|own| ShortName::parse(name).unwrap().is_of(&own));
        let second = address(gts::WORKFLOW, "vendor.app.tax.v2");
        assert!(of(&second, "vendor.app.tax") && of(&second, "vendor.app.tax.v2"));
        assert!(of(&second, &format!("{}vendor.app.tax", gts::WORKFLOW)));
        assert!(!of(&second, &format!("{}vendor.app.tax", gts::FUNCTION)));
        assert!(!of(&second, "vendor.app.tax.v1") && !of(&second, "vendor.app.ta") && !of(&second, "vendor.app"));
        // What has a name that continues this one, or derives from it, is another thing.
        assert!(!of(&address(gts::WORKFLOW, "vendor.app.tax.vat.v1"), "vendor.app.tax"));
        assert!(!of(&address(gts::WORKFLOW, "vendor.app.tax.v1~vendor.app.tax.v1"), "vendor.app.tax"));
        let versions =
            [version(1, None), version(1, Some(0)), version(1, Some(12)), version(2, None), version(10, None)];
        assert!(versions.is_sorted(), "as versions, not as texts");
        assert_eq!(Own::of(&second).unwrap().to_string(), "vendor.app.tax.v2");
    }

    #[test]
    fn what_is_near_is_proposed_and_nothing_else() {
        let names = ["vendor.app.tax", "vendor.app.ask", "vendor.shop.order", "other.app.tax"];
        for (asked, expected) in [
            ("vendor.app.taxx", &["vendor.app.tax"][..]),
            ("vendor.app.atx", &["vendor.app.tax", "vendor.app.ask"]),
            ("Vendor.App.Tax", &["vendor.app.tax", "other.app.tax"]),
            ("tax", &["other.app.tax", "vendor.app.tax"]),
            ("ordr", &["vendor.shop.order"]),
            ("vendr.shp.order", &["vendor.shop.order"]),
            ("acme.order", &["vendor.shop.order"]),
            ("invoice", &[]),
            ("t", &[]),
            ("", &[]),
        ] {
            assert_eq!(near(asked, names), expected, "{asked}");
        }
        assert_eq!(near("aaaa", ["aaaa.1", "aaab", "aaac", "aaad", "aaae"]).len(), PROPOSED_MAX);
        let long = "x".repeat(100_000);
        assert_eq!(near(&long, [long.as_str()]).len(), 1, "compared by its beginning");
    }
}
