//! Downloading a backup: streamed, so that its size does not matter, and in its place only when it is complete.

use std::path::Path;

use reqwest::Method;

use crate::client::{Client, Patience};
use crate::error::Error;
use crate::file::{AtomicFile, IfExists};

impl Client {
    /// Copies the server's store to a file. Says how many bytes it has.
    pub async fn download_backup(&self, to: &Path, if_exists: IfExists) -> Result<u64, Error> {
        let mut file = AtomicFile::create(to, if_exists)?;
        let mut response = self.send(self.request(Method::GET, "/v1/store/backup", &[]), Patience::Endless).await?;
        let announced = response.content_length();
        let mut size = 0;
        // A connection that breaks off is an error here, with and without an announced length.
        while let Some(chunk) = response.chunk().await.map_err(|error| self.unreachable(&error))? {
            file.write(&chunk)?;
            size += chunk.len() as u64;
        }
        if announced.is_some_and(|announced| announced != size) {
            let reason = format!("{size} bytes came, {} were announced", announced.unwrap_or_default());
            return Err(Error::Decode { request: "/v1/store/backup".to_owned(), reason });
        }
        file.commit()?;
        Ok(size)
    }
}
