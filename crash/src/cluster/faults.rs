//! Makes the faults of a plan happen, one after the other.

use super::cycle::Scene;
use super::plan::{Fault, Moment, Whose};
use super::site::Site;
use posse_testkit::Traffic;
use std::io;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The longest wait for requests or effects.
const PATIENCE: Duration = Duration::from_secs(6);
const A_MOMENT: Duration = Duration::from_millis(20);

impl Scene {
    /// Makes all faults happen.
    pub(super) async fn play_faults(&mut self) -> io::Result<()> {
        for (moment, fault) in self.plan.faults.clone() {
            self.wait_for(moment).await?;
            if matches!(fault, Fault::FillDisk(_)) && !Site::has_disks() {
                self.untested.insert(fault.name());
                continue;
            }
            let busy = self.is_busy().await;
            self.history(&format!("{fault:?}, busy: {busy}"));
            let happened = self.make(&fault).await?;
            self.history("over");
            if busy && happened {
                self.happened.insert(fault.name());
            }
        }
        Ok(())
    }

    async fn wait_for(&mut self, moment: Moment) -> io::Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let reached = match moment {
                Moment::After(time) => begun.elapsed() >= time,
                Moment::Requests(count) => self.fake.count() >= count,
                Moment::Effects(count) => self.effects() >= count,
            };
            if reached {
                break;
            }
            self.wait(A_MOMENT).await?;
        }
        Ok(())
    }

    /// Waits, and replaces workers that end meanwhile.
    pub(super) async fn wait(&mut self, time: Duration) -> io::Result<()> {
        let until = Instant::now() + time;
        loop {
            self.tend()?;
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            sleep(left.min(Duration::from_millis(100))).await;
        }
    }

    async fn traffic(&mut self, whose: Whose, traffic: Traffic, time: Duration) -> io::Result<()> {
        self.site.set(whose, traffic);
        self.wait(time).await?;
        self.site.set(whose, Traffic::Free);
        Ok(())
    }

    /// Makes a fault happen. Returns false if its worker was not there.
    async fn make(&mut self, fault: &Fault) -> io::Result<bool> {
        match *fault {
            Fault::Kill(worker) => return Ok(self.fleet.kill(worker)),
            // The worker was told at its start. Whether it has died is known at the end.
            Fault::KillAt(..) => return Ok(false),
            Fault::Pause(worker, time) => {
                let happened = self.fleet.pause(worker);
                self.wait(time).await?;
                self.fleet.go_on(worker);
                return Ok(happened);
            }
            Fault::Drain(worker) => return Ok(self.fleet.drain(worker)),
            Fault::Cut(whose) => self.site.cut(whose),
            Fault::Slow(whose, delay, time) => {
                self.traffic(whose, Traffic::Slow(delay), time).await?;
            }
            Fault::Hold(whose, time) => self.traffic(whose, Traffic::Held, time).await?,
            Fault::Unanswered(whose, time) => {
                self.traffic(whose, Traffic::Unanswered, time).await?;
            }
            Fault::Refuse(whose, time) => {
                self.site.set(whose, Traffic::Closed);
                self.site.cut(whose);
                self.wait(time).await?;
                self.site.set(whose, Traffic::Free);
            }
            Fault::Restart(how, time) => {
                self.site.node.stop(how).await?;
                self.wait(time).await?;
                self.site.node.start().await?;
            }
            Fault::Exhaust(time) => {
                let mut taken = self.site.exhaust().await;
                self.site.cut(Whose::All);
                // Some have become free now.
                taken.extend(self.site.exhaust().await);
                self.wait(time).await?;
            }
            Fault::FillDisk(time) => {
                self.site.node.fill_disk().await?;
                self.wait(time).await?;
                self.site.node.free_disk().await?;
            }
            Fault::FailOver(time) => self.site.fail_over(time).await?,
        }
        Ok(true)
    }
}
