//! What all requests to one model with one key share: a server that refuses one of them for being asked too much has
//! refused them all. They wait together, and one asks again.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::ModelFailure;

/// From how many at a time on nobody waits for another any more.
const OPEN: usize = 64;

type Id = (u32, [u8; 32]);

/// Without a lock, which a fork could leave locked forever; a forked child has buckets of its own.
static BUCKETS: LazyLock<ArcSwap<HashMap<Id, Weak<Bucket>>>> = LazyLock::new(ArcSwap::default);

/// What all requests to one model with one key share.
#[derive(Debug, Default)]
pub(super) struct Bucket {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Refusals since the last answer. Those of requests that were under way together count once.
    refusals: u32,
    /// Nobody asks before.
    paused_until: Option<Instant>,
    /// After a pause: how many may be under way at a time. `None`: as many as like.
    ramp: Option<usize>,
    under_way: usize,
    /// Counts pauses.
    epoch: u64,
    /// Whoever had come by this pause has nothing to hope for, and why.
    given_up: Option<(u64, ModelFailure)>,
    last: Option<ModelFailure>,
}

/// A request on its way. Dropped without a word, it leaves its place to another.
pub(super) struct Pass {
    bucket: Arc<Bucket>,
    epoch: u64,
    counted: bool,
}

impl Bucket {
    /// The bucket of an address, a model and a key. The key is not kept, only a hash of all three.
    pub(super) fn of(url: &str, model: &str, key: &str) -> Arc<Bucket> {
        let mut hasher = blake3::Hasher::new();
        for part in [url, model, key] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        let id = (std::process::id(), *hasher.finalize().as_bytes());
        let known = |map: &HashMap<Id, Weak<Bucket>>| map.get(&id).and_then(Weak::upgrade);
        if let Some(bucket) = known(&BUCKETS.load()) {
            return bucket;
        }
        let fresh = Arc::new(Bucket::default());
        let mut found = fresh.clone();
        BUCKETS.rcu(|map| {
            let mut map: HashMap<Id, Weak<Bucket>> = HashMap::clone(map);
            map.retain(|(process, _), bucket| *process == id.0 && bucket.strong_count() > 0);
            found = known(&map).unwrap_or_else(|| fresh.clone());
            map.insert(id, Arc::downgrade(&found));
            map
        });
        found
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of the present pause: what a request remembers of when it came.
    pub(super) fn arrive(&self) -> u64 {
        self.lock().epoch
    }

    /// Waits until a request that came at `arrived` may be made.
    ///
    /// # Errors
    /// The failure of the others, if the budget of retries that all share was used up meanwhile, or the pause lasts until
    /// `deadline`.
    pub(super) async fn enter(self: &Arc<Self>, arrived: u64, deadline: Option<Instant>) -> Result<Pass, ModelFailure> {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let until = {
                let mut state = self.lock();
                if let Some((_, failure)) = state.given_up.as_ref().filter(|(epoch, _)| arrived < *epoch) {
                    return Err(failure.clone());
                }
                match state.paused_until.filter(|until| Instant::now() < *until) {
                    Some(until) => {
                        if let Some(last) = state.last.as_ref().filter(|_| deadline.is_some_and(|end| until >= end)) {
                            let message = format!("{}; there is no time left for another attempt", last.message);
                            return Err(ModelFailure { message, ..last.clone() });
                        }
                        Some(until)
                    }
                    None if state.ramp.is_none_or(|ramp| state.under_way < ramp) => {
                        let counted = state.ramp.is_some();
                        state.under_way += usize::from(counted);
                        return Ok(Pass { bucket: self.clone(), epoch: state.epoch, counted });
                    }
                    None => None,
                }
            };
            match until {
                Some(until) => tokio::select! { () = sleep_until(until) => {}, () = changed => {} },
                None => changed.await,
            }
        }
    }
}

impl Pass {
    /// The server answered, whatever it said: it can be asked.
    pub(super) fn answered(self) {
        let mut state = self.bucket.lock();
        if self.epoch == state.epoch {
            state.refusals = 0;
            state.ramp = state.ramp.map(|ramp| ramp * 2).filter(|ramp| *ramp < OPEN);
        }
    }

    /// The server was asked too much. Returns how many refusals in a row there were before, of all together.
    pub(super) fn refused(&self, failure: &ModelFailure) -> u32 {
        let mut state = self.bucket.lock();
        state.last = Some(failure.clone());
        if self.epoch == state.epoch {
            state.epoch += 1;
            state.refusals += 1;
            state.ramp = Some(1);
        }
        state.refusals.saturating_sub(1)
    }

    /// Nobody asks for so long.
    pub(super) fn pause(&self, wait: Duration) {
        let mut state = self.bucket.lock();
        let until = Instant::now() + wait;
        state.paused_until = Some(state.paused_until.map_or(until, |known| known.max(until)));
    }

    /// The budget is used up: whoever waits has the same failure. Whoever comes later tries again.
    pub(super) fn give_up(&self, failure: &ModelFailure) {
        let mut state = self.bucket.lock();
        let message =
            format!("{} (the same for all requests with this key, {} times)", failure.message, state.refusals);
        let failure = ModelFailure { message, attempts: 0, ..failure.clone() };
        state.given_up = Some((state.epoch, failure));
        state.refusals = 0;
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if self.counted {
            let mut state = self.bucket.lock();
            state.under_way = state.under_way.saturating_sub(1);
        }
        self.bucket.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::model::FailureKind;

    fn refusal() -> ModelFailure {
        ModelFailure { status: Some(429), ..ModelFailure::new(FailureKind::RateLimited, "too many") }
    }

    /// A server that refuses until a moment, and how many requests it has seen.
    struct Server {
        until: Instant,
        seen: AtomicUsize,
        at_a_time: AtomicUsize,
        most: AtomicUsize,
    }

    impl Server {
        fn new(seconds: u64) -> Arc<Self> {
            let until = Instant::now() + Duration::from_secs(seconds);
            Arc::new(Server {
                until,
                seen: AtomicUsize::new(0),
                at_a_time: AtomicUsize::new(0),
                most: AtomicUsize::new(0),
            })
        }

        async fn ask(&self) -> bool {
            self.seen.fetch_add(1, Ordering::SeqCst);
            let now = self.at_a_time.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(now, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(100)).await;
            self.at_a_time.fetch_sub(1, Ordering::SeqCst);
            Instant::now() >= self.until
        }
    }

    /// What `Wire::ask` does, with waits of 1, 2, 4, … seconds.
    async fn request(bucket: Arc<Bucket>, server: Arc<Server>, retries: u32) -> Result<(), ModelFailure> {
        let arrived = bucket.arrive();
        loop {
            let pass = bucket.enter(arrived, None).await?;
            if server.ask().await {
                pass.answered();
                return Ok(());
            }
            let before = pass.refused(&refusal());
            if before >= retries {
                pass.give_up(&refusal());
                return Err(refusal());
            }
            pass.pause(Duration::from_secs(1 << before));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_storm_is_one_request_at_a_time() {
        let (bucket, server) = (Arc::new(Bucket::default()), Server::new(10));
        let requests: Vec<_> = (0..20).map(|_| tokio::spawn(request(bucket.clone(), server.clone(), 9))).collect();
        for request in requests {
            request.await.unwrap().unwrap();
        }
        // 20 at once, then after 1, 2, 4 and 8 seconds one each, then the 19 others. Each for itself would be 100.
        assert_eq!(server.seen.load(Ordering::SeqCst), 20 + 4 + 19);
        assert_eq!(server.most.load(Ordering::SeqCst), 20);
    }

    #[tokio::test(start_paused = true)]
    async fn the_budget_is_shared_and_whoever_comes_later_tries_again() {
        let (bucket, server) = (Arc::new(Bucket::default()), Server::new(1000));
        let requests: Vec<_> = (0..20).map(|_| tokio::spawn(request(bucket.clone(), server.clone(), 2))).collect();
        for request in requests {
            let failure = request.await.unwrap().unwrap_err();
            assert_eq!(failure.status, Some(429));
        }
        assert_eq!(server.seen.load(Ordering::SeqCst), 20 + 2);
        tokio::time::sleep(Duration::from_secs(2000)).await;
        request(bucket, server, 2).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_is_given_up_leaves_its_place() {
        let (bucket, server) = (Arc::new(Bucket::default()), Server::new(5));
        let requests: Vec<_> = (0..6).map(|_| tokio::spawn(request(bucket.clone(), server.clone(), 9))).collect();
        tokio::time::sleep(Duration::from_millis(1150)).await;
        // The first pause is over and one asks: whichever it is, with all others but two it is given up.
        for request in &requests[..4] {
            request.abort();
        }
        for request in requests.into_iter().skip(4) {
            request.await.unwrap().unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_that_outlasts_a_request_is_its_failure() {
        let bucket = Arc::new(Bucket::default());
        let pass = bucket.enter(0, None).await.ok().unwrap();
        pass.refused(&refusal());
        pass.pause(Duration::from_secs(3600));
        drop(pass);
        let end = Instant::now() + Duration::from_secs(60);
        let failure = bucket.enter(bucket.arrive(), Some(end)).await.err().unwrap();
        assert!(failure.message.contains("too many; there is no time left"), "{}", failure.message);
    }

    #[test]
    fn one_bucket_for_each_address_model_and_key() {
        let bucket = Bucket::of("http://a", "m", "k");
        assert!(Arc::ptr_eq(&bucket, &Bucket::of("http://a", "m", "k")));
        for (url, model, key) in
            [("http://b", "m", "k"), ("http://a", "n", "k"), ("http://a", "m", "l"), ("http://am", "", "k")]
        {
            assert!(!Arc::ptr_eq(&bucket, &Bucket::of(url, model, key)));
        }
        assert!(!format!("{bucket:?}").contains('k') || !format!("{bucket:?}").contains("http"));
    }
}
