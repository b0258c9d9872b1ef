//! Plans from listed folders of this machine.

use std::path::{Path, PathBuf};

use tokio::io::AsyncReadExt;

use super::{not_allowed, too_large, unavailable};
use crate::error::Answer;

/// The path of a `file:///path` URI. Escapes are not read, so that a path has one spelling.
pub(super) fn path_of(uri: &str) -> Option<PathBuf> {
    let path = uri.strip_prefix("file://")?;
    (path.starts_with('/') && !path.contains(['%', '?', '#', '\0'])).then(|| PathBuf::from(path))
}

pub(super) async fn read(folders: &[PathBuf], uri: &str, bytes_max: usize) -> Answer<Vec<u8>> {
    let path = path_of(uri).ok_or_else(not_allowed)?;
    // Links and `..` are followed first; what counts is where they lead. A path that is not there is answered like one
    // that is not listed, or the answer would tell which files exist.
    let path = tokio::fs::canonicalize(&path).await.map_err(|_| not_allowed())?;
    if !is_listed(folders, &path).await {
        return Err(not_allowed());
    }
    let kind = tokio::fs::metadata(&path).await.map_err(unavailable)?;
    // A pipe or device could block or never end.
    if !kind.is_file() {
        return Err(not_allowed());
    }
    let file = tokio::fs::File::open(&path).await.map_err(unavailable)?;
    let mut bytes = Vec::new();
    file.take(bytes_max as u64 + 1).read_to_end(&mut bytes).await.map_err(unavailable)?;
    if bytes.len() > bytes_max { Err(too_large(bytes_max)) } else { Ok(bytes) }
}

async fn is_listed(folders: &[PathBuf], path: &Path) -> bool {
    for folder in folders {
        if let Ok(folder) = tokio::fs::canonicalize(folder).await
            && path.starts_with(&folder)
        {
            return true;
        }
    }
    false
}
