//! `cargo xtask layers`: the architecture as a check. Dependencies point down only, low layers stay free of IO,
//! and every manifest inherits lints and dependency declarations from the root.
//!
//! It looks at what manifests declare, not at what cargo resolves; licences and versions are the business of `deny.toml`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::commands::no_arguments;
use crate::manifest::Manifest;
use crate::{process, workspace};

/// Edges inside one layer that the architecture draws.
const SAME_LAYER_EDGES: [(&str, &str); 5] = [
    ("servo-model", "servo-canon"),
    ("servo-replay", "servo-wire"),
    // Both call addresses that tenants choose. The guard resolves names, so it cannot be lower.
    ("servo-adapter-lambda", "servo-egress"),
    ("servo-adapter-starlark", "servo-egress"),
    // The test kit is the embedded engine with another clock and faults in between.
    ("servo-sdk-testkit", "servo-embedded"),
];

/// External crates and the lowest layer that may use them: below, decisions are pure and compile in seconds.
const LOWEST_LAYER: [(&str, u64); 13] = [
    ("tokio", 3),
    ("tokio-util", 3),
    ("rusqlite", 3),
    ("tokio-postgres", 3),
    ("deadpool-postgres", 3),
    ("async-nats", 3),
    ("hyper", 3),
    ("reqwest", 3),
    ("rustls", 3),
    ("tokio-rustls", 3),
    // The fault-injecting and differential testkit of `store` needs seeds; nothing below it may be random.
    ("rand", 2),
    // The Runtime API that workers of functions ask is served by their adapter.
    ("axum", 3),
    ("tower-http", 6),
];

/// Beside the layers: they may see everything, and nothing may see them.
const OUTSIDE_THE_LAYERS: [&str; 3] = ["tests/e2e", "bench", "xtask"];

struct Package {
    name: String,
    /// Relative to the root.
    dir: PathBuf,
    layer: Option<u64>,
    dependencies: Vec<Dependency>,
    manifest: Manifest,
}

struct Dependency {
    name: String,
    is_dev: bool,
}

pub(crate) fn run(args: &[String]) -> Result<()> {
    no_arguments(args)?;
    let root = workspace::root()?;
    let packages = read_packages(&root)?;
    let problems = check(&packages);
    for problem in &problems {
        println!("{problem}");
    }
    if !problems.is_empty() {
        bail!("{} problems in the layers", problems.len());
    }
    println!("{} crates, all dependencies point down", packages.len());
    Ok(())
}

fn read_packages(root: &Path) -> Result<Vec<Package>> {
    // No --locked: with --no-deps nothing is resolved, and a lock file is neither read nor written.
    let text = process::capture(workspace::cargo(root, "metadata").args(["--format-version", "1", "--no-deps"]))?;
    let metadata: Value = serde_json::from_str(&text).context("parse cargo metadata")?;
    let root = root.canonicalize().context("resolve the root folder")?;
    let packages = metadata["packages"].as_array().context("cargo metadata has no packages")?;
    packages.iter().map(|package| read_package(&root, package)).collect()
}

fn read_package(root: &Path, package: &Value) -> Result<Package> {
    let name = package["name"].as_str().context("a package has no name")?.to_owned();
    let file = Path::new(package["manifest_path"].as_str().context("a package has no manifest")?);
    let file = file.canonicalize().with_context(|| format!("resolve {}", file.display()))?;
    let dir = file.parent().context("a manifest lies in a folder")?;
    let dir = dir.strip_prefix(root).unwrap_or(dir).to_owned();
    let text = std::fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
    let declared = package["dependencies"].as_array().context("a package has no dependency list")?;
    let dependencies = declared.iter().map(|dependency| {
        let name = dependency["name"].as_str().context("a dependency has no name")?.to_owned();
        Ok(Dependency { name, is_dev: dependency["kind"] == "dev" })
    });
    Ok(Package {
        name,
        dir,
        layer: package["metadata"]["servo"]["layer"].as_u64(),
        dependencies: dependencies.collect::<Result<_>>()?,
        manifest: Manifest::parse(&text),
    })
}

fn check(packages: &[Package]) -> Vec<String> {
    let own: BTreeMap<&str, &Package> = packages.iter().map(|package| (package.name.as_str(), package)).collect();
    let mut problems = Vec::new();
    for package in packages {
        let manifest = package.dir.join("Cargo.toml");
        let manifest = manifest.display();
        if !package.manifest.inherits_lints() {
            problems.push(format!("{manifest}: [lints] workspace = true is missing"));
        }
        for (line, message) in package.manifest.misplaced_dependencies(|name| own.contains_key(name)) {
            problems.push(format!("{manifest}:{line}: {message}"));
        }
        if is_outside(package) {
            continue;
        }
        let Some(layer) = package.layer else {
            problems.push(format!("{manifest}: [package.metadata.servo] layer = N is missing"));
            continue;
        };
        for dependency in package.dependencies.iter().filter(|dependency| !dependency.is_dev) {
            let problem = match own.get(dependency.name.as_str()) {
                Some(target) => edge_problem(package, layer, target),
                None => external_problem(layer, &dependency.name),
            };
            problems.extend(problem.map(|problem| format!("{manifest}: {problem}")));
        }
    }
    problems
}

fn is_outside(package: &Package) -> bool {
    OUTSIDE_THE_LAYERS.iter().any(|dir| package.dir == Path::new(dir))
}

fn edge_problem(from: &Package, layer: u64, to: &Package) -> Option<String> {
    if is_outside(to) {
        return Some(format!("{} is a tool beside the layers, no crate may depend on it", to.name));
    }
    // A target without a layer is reported where it is declared.
    let target = to.layer?;
    let drawn = target == layer && SAME_LAYER_EDGES.contains(&(&from.name, &to.name));
    let points_down = target < layer || drawn;
    (!points_down).then(|| format!("layer {layer} must not depend on {} of layer {target}", to.name))
}

fn external_problem(layer: u64, name: &str) -> Option<String> {
    let (_, lowest) = LOWEST_LAYER.iter().find(|(forbidden, _)| *forbidden == name)?;
    (layer < *lowest).then(|| format!("layer {layer} must not use {name}, which starts at layer {lowest}"))
}

#[cfg(test)]
mod tests;
