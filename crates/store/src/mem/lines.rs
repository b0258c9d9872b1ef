//! Log lines, one after another, and the oldest out as soon as there are too many.

use async_trait::async_trait;
use servo_model::{RunId, TenantId};

use super::MemStore;
use crate::error::{Error, Result};
use crate::lines::{LineStore, LogLine, prepare};
use crate::runs::Scope;

#[async_trait]
impl LineStore for MemStore {
    async fn put_lines(&self, run_id: &RunId, tenant: &TenantId, lines: Vec<LogLine>) -> Result<()> {
        let lines = prepare(lines, &self.limits)?;
        let mut inner = self.lock()?;
        let run = inner.runs.get_mut(run_id).filter(|run| run.row.tenant == *tenant).ok_or(Error::NotFound)?;
        let mut bytes: usize = run.lines.values().map(|line| line.text.len()).sum();
        for line in lines {
            run.last_line += 1;
            bytes += line.text.len();
            run.lines.insert(run.last_line, line);
            while run.lines.len() as u64 > self.limits.lines_per_run_max || bytes > self.limits.lines_bytes_per_run_max
            {
                let Some((_, oldest)) = run.lines.pop_first() else { break };
                bytes -= oldest.text.len();
            }
        }
        Ok(())
    }

    async fn read_lines(&self, scope: &Scope, run_id: &RunId, after: u64, limit: u32) -> Result<Vec<(u64, LogLine)>> {
        let inner = self.lock()?;
        let lines = inner.run(scope, run_id)?.lines.range(after.saturating_add(1)..);
        Ok(lines.take(limit as usize).map(|(number, line)| (*number, line.clone())).collect())
    }
}
