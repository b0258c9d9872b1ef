//! The layer rules on made-up packages.

use super::*;

const LINTS: &str = "[lints]\nworkspace = true\n";

fn package(name: &str, dir: &str, layer: Option<u64>, dependencies: &[&str]) -> Package {
    let dependencies = dependencies.iter().map(|text| match text.strip_prefix("dev:") {
        Some(name) => Dependency { name: name.to_owned(), is_dev: true },
        None => Dependency { name: (*text).to_owned(), is_dev: false },
    });
    Package {
        name: name.to_owned(),
        dir: dir.into(),
        layer,
        dependencies: dependencies.collect(),
        manifest: Manifest::parse(LINTS),
    }
}

#[test]
fn edges_point_down() {
    let low = || package("servo-low", "crates/low", Some(1), &[]);
    let down = package("servo-high", "crates/high", Some(2), &["servo-low"]);
    assert_eq!(check(&[low(), down]), [""; 0]);

    let sideways = package("servo-other", "crates/other", Some(1), &["servo-low"]);
    let expected = ["crates/other/Cargo.toml: layer 1 must not depend on servo-low of layer 1"];
    assert_eq!(check(&[low(), sideways]), expected);

    let up = package("servo-base", "crates/base", Some(0), &["servo-low"]);
    assert_eq!(check(&[low(), up]), ["crates/base/Cargo.toml: layer 0 must not depend on servo-low of layer 1"]);
}

#[test]
fn tests_may_look_up() {
    let high = package("servo-high", "crates/high", Some(2), &[]);
    let low = package("servo-low", "crates/low", Some(1), &["dev:servo-high", "dev:tokio"]);
    assert_eq!(check(&[high, low]), [""; 0]);
}

#[test]
fn only_drawn_edges_stay_inside_a_layer() {
    let canon = || package("servo-canon", "crates/canon", Some(0), &[]);
    let model = || package("servo-model", "crates/model", Some(0), &["servo-canon"]);
    assert_eq!(check(&[canon(), model()]), [""; 0]);

    let canon_on_model = package("servo-canon", "crates/canon", Some(0), &["servo-model"]);
    assert_eq!(check(&[canon_on_model, model()]).len(), 1);
}

#[test]
fn low_layers_do_no_io() {
    let store = package("servo-store", "crates/store", Some(2), &["tokio"]);
    let expected = ["crates/store/Cargo.toml: layer 2 must not use tokio, which starts at layer 3"];
    assert_eq!(check(&[store]), expected);

    let sqlite = package("servo-store-sqlite", "crates/store-sqlite", Some(3), &["tokio", "rusqlite"]);
    assert_eq!(check(&[sqlite]), [""; 0]);
}

#[test]
fn tools_are_outside_but_keep_the_lints() {
    let server = || package("servo-server", "crates/server", Some(6), &[]);
    let mut tool = package("servo-bench", "bench", None, &["servo-server"]);
    assert_eq!(check(&[server(), tool]), [""; 0]);

    tool = package("servo-bench", "bench", None, &[]);
    tool.manifest = Manifest::default();
    assert_eq!(check(&[tool]), ["bench/Cargo.toml: [lints] workspace = true is missing"]);

    let tool = package("xtask", "xtask", None, &[]);
    let user = package("servo-user", "crates/user", Some(6), &["xtask"]);
    assert_eq!(check(&[tool, user]).len(), 1);
}

#[test]
fn a_crate_without_a_layer_is_reported_once() {
    let low = package("servo-low", "crates/low", None, &[]);
    let high = package("servo-high", "crates/high", Some(2), &["servo-low"]);
    assert_eq!(check(&[low, high]), ["crates/low/Cargo.toml: [package.metadata.servo] layer = N is missing"]);
}
