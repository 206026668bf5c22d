//! A team on a virtual clock: random delays, faults and letters, one thousand seeds, and what has to hold in each.
//!
//! `TEAM_SEEDS=20000` tries more of them, `TEAM_SEED=7` one alone.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};
use std::time::{Duration, Instant};

use hookwright::agent::turn::{Answer, CallAnswer, Effect, Prices, Step, Turn, TurnConfig, TurnResult, TurnTool};
use hookwright::agent::{Limits, Session, SessionOptions};
use hookwright::hook::{AgentIdentity, AgentKind, Scope};
use hookwright::message::{Role, ToolCall};
use hookwright::model::{FailureKind, ModelFailure, Reply, ToolDescription};
use hookwright::team::{
    Draft, Ended, Life, LifeAnswer, LifeConfig, LifeEffect, LifeStep, MemberDesk, MemberLimits, NewMember, Office,
    OfficeOptions, Outcome, TaskState, delivered_in, team_tools,
};
use serde_json::json;

const NAMES: [&str; 5] = ["ada", "bob", "carol", "张三", "张三丰"];
/// How long the lead goes on sending and cancelling, in virtual milliseconds.
const BUSY: u64 = 2_000;

/// What happens at some moment.
enum What {
    /// The model of a member answers.
    Model(usize),
    /// Its tools are done.
    Tools(usize, usize),
    /// It is woken. The number says which of its waits is meant.
    Wake(usize, u64),
    /// Its wait was long enough.
    TimeOut(usize, u64),
    /// The lead writes.
    Lead,
    /// The lead cancels somebody.
    Cancel,
}

struct Member {
    name: &'static str,
    session: Arc<Session>,
    config: Arc<TurnConfig>,
    life: Option<Life>,
    turn: Option<Turn>,
    waiting: Option<u64>,
    lives: usize,
}

#[derive(Default)]
struct Woken(Mutex<VecDeque<(usize, u64)>>);

struct Bell {
    woken: Arc<Woken>,
    member: usize,
    wait: u64,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.woken.0.lock().unwrap().push_back((self.member, self.wait));
    }
}

struct World {
    random: fastrand::Rng,
    office: Arc<Office>,
    members: Vec<Member>,
    queue: BinaryHeap<Reverse<(u64, u64, usize)>>,
    happening: Vec<Option<What>>,
    now: u64,
    waits: u64,
    woken: Arc<Woken>,
    /// What was sent, to whom it was addressed.
    sent: Vec<(String, String, Vec<String>)>,
    /// What the lead was told.
    told: Vec<String>,
    /// Each end, in order.
    ends: Vec<(String, Ended)>,
    /// What happened, to compare two runs.
    log: Vec<String>,
    statuses: HashMap<String, u64>,
    owners: HashMap<String, String>,
}

fn work() -> TurnTool {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": false});
    let description = ToolDescription { name: "work".into(), description: "Works".into(), schema: Arc::new(schema) };
    TurnTool::new(description, true)
}

impl World {
    fn new(seed: u64) -> Self {
        let office = Arc::new(Office::new(OfficeOptions::default()));
        office.watch(true);
        let mut world = World {
            random: fastrand::Rng::with_seed(seed),
            office,
            members: Vec::new(),
            queue: BinaryHeap::new(),
            happening: Vec::new(),
            now: 0,
            waits: 0,
            woken: Arc::default(),
            sent: Vec::new(),
            told: Vec::new(),
            ends: Vec::new(),
            log: Vec::new(),
            statuses: HashMap::new(),
            owners: HashMap::new(),
        };
        for name in NAMES {
            world.join(name);
        }
        world.at(0, What::Lead);
        world.at(0, What::Cancel);
        world
    }

    fn join(&mut self, name: &'static str) {
        let limits = MemberLimits { max_rounds: 40, ..MemberLimits::default() };
        let new = NewMember { name: name.into(), parent: "lead".into(), limits, ..NewMember::default() };
        self.office.join(new).unwrap();
        let session = Arc::new(Session::in_memory(SessionOptions::default()));
        let config = TurnConfig {
            agent: AgentIdentity { name: name.into(), kind: AgentKind::Teammate, parent: Some("lead".into()) },
            model: "simulated".into(),
            system: self.office.introduction(name),
            tools: std::iter::once(work()).chain(team_tools()).collect(),
            chain: None,
            session: session.clone(),
            cwd: PathBuf::from("/"),
            limits: Limits { max_rounds: u32::MAX, repeated_call: None, ..Limits::default() },
            prices: Prices::default(),
            result_cap: 100_000,
            window: None,
            checks_output: false,
            now: Instant::now,
            desk: Some(Arc::new(MemberDesk::new(self.office.clone(), name))),
        };
        let config = Arc::new(config);
        let member = Member { name, session, config, life: None, turn: None, waiting: None, lives: 0 };
        self.members.push(member);
        self.begin(self.members.len() - 1);
    }

    fn begin(&mut self, index: usize) {
        let member = &mut self.members[index];
        assert!(member.life.is_none(), "{} lives twice", member.name);
        member.lives += 1;
        member.life = Some(Life::new(LifeConfig {
            office: self.office.clone(),
            name: member.name.into(),
            chain: None,
            scope: Arc::new(Scope::default()),
            idle_timeout: (index == 2).then_some(Duration::from_millis(40)),
            max_idle_loops: 3,
            interrupted: false,
        }));
        self.live(index, None);
    }

    fn at(&mut self, delay: u64, what: What) {
        self.happening.push(Some(what));
        let number = self.happening.len();
        self.queue.push(Reverse((self.now + delay, number as u64, number - 1)));
    }

    /// Goes on with a life until it has something to wait for.
    fn live(&mut self, index: usize, mut answer: Option<LifeAnswer>) {
        loop {
            let Some(life) = &mut self.members[index].life else { return };
            let step = life.resume(answer.take()).expect("a life that is asked goes on");
            match step {
                LifeStep::Done(ended) => {
                    let name = self.members[index].name.to_owned();
                    self.log.push(format!("{} {name} ended {ended:?}", self.now));
                    self.ends.push((name, ended));
                    self.members[index].life = None;
                    return;
                }
                LifeStep::Effect(LifeEffect::Dispatch(_)) => unreachable!("there are no hooks"),
                LifeStep::Effect(LifeEffect::Wait(seconds)) => {
                    self.waits += 1;
                    let wait = self.waits;
                    let member = &mut self.members[index];
                    let bell = Waker::from(Arc::new(Bell { woken: self.woken.clone(), member: index, wait }));
                    if self.office.mailbox(member.name).unwrap().wake_with(&bell) {
                        answer = Some(LifeAnswer::Woken);
                        continue;
                    }
                    member.waiting = Some(wait);
                    if let Some(seconds) = seconds {
                        self.at(seconds.as_millis() as u64, What::TimeOut(index, wait));
                    }
                    return;
                }
                LifeStep::Effect(LifeEffect::Turn(input)) => {
                    let member = &mut self.members[index];
                    member.turn = Some(Turn::new(member.config.clone(), *input));
                    match self.turn(index, None) {
                        None => return,
                        Some(result) => answer = Some(LifeAnswer::Turn(result)),
                    }
                }
            }
        }
    }

    /// Goes on with a turn; its result if it is over.
    fn turn(&mut self, index: usize, answer: Option<Answer>) -> Option<Box<TurnResult>> {
        let turn = self.members[index].turn.as_mut()?;
        let step = turn.resume(answer).expect("a turn that is asked goes on");
        turn.take_events();
        match step {
            Step::Done(result) => {
                self.members[index].turn = None;
                Some(result)
            }
            Step::Effect(Effect::Model { .. }) => {
                let delay = self.random.u64(1..50);
                self.at(delay, What::Model(index));
                None
            }
            Step::Effect(Effect::Calls(calls)) => {
                let delay = self.random.u64(1..80);
                self.at(delay, What::Tools(index, calls.len()));
                None
            }
            Step::Effect(_) => unreachable!("nothing else is asked for here"),
        }
    }

    fn answer(&mut self, index: usize, answer: Answer) {
        if self.members[index].turn.is_none() {
            return; // It was cancelled or broke meanwhile.
        }
        if let Some(result) = self.turn(index, Some(answer)) {
            self.live(index, Some(LifeAnswer::Turn(result)));
        }
    }

    /// What a model says: letters, tasks, work, prose, or nothing but an error.
    fn reply(&mut self, index: usize) -> Result<Reply, ModelFailure> {
        if self.random.u32(0..300) == 0 {
            return Err(ModelFailure::new(FailureKind::Server, "the server is gone"));
        }
        let count = self.random.usize(0..3);
        let mut calls = Vec::new();
        for _ in 0..count {
            let number = self.happening.len() * 8 + calls.len();
            let id = format!("c{number}");
            let task = format!("t{}", self.random.u32(1..8));
            let other = ["ada", "bob", "carol", "张三", "张三丰", "lead", "all", "eve"][self.random.usize(0..8)];
            let (name, arguments) = match self.random.u32(0..12) {
                0..=3 => (
                    "send_message",
                    json!({"to": other, "text": format!("letter {number}"),
                    "expects_reply": self.random.bool(), "private": self.random.u32(0..4) == 0}),
                ),
                4 => ("task_add", json!({"title": format!("task {number}")})),
                5 | 6 => ("task_claim", json!({"id": task})),
                7 => {
                    let state = ["open", "done", "in_progress"][self.random.usize(0..3)];
                    ("task_update", json!({"id": task, "state": state, "note": format!("note {number}")}))
                }
                8 if self.random.bool() => ("work_done", json!({"summary": "enough"})),
                9 => ("ignore_message", json!({"reason": "no"})),
                10 => ("list_team", json!({})),
                _ => ("work", json!({"n": number})),
            };
            calls.push(ToolCall::new(id, name, arguments.as_object().cloned().unwrap()));
        }
        let mut reply = Reply::tool_calls(calls);
        if reply.tool_calls.is_empty() {
            reply = Reply::text(format!("{} has nothing more to say", self.members[index].name));
        }
        Ok(reply)
    }

    fn happen(&mut self, what: What) {
        match what {
            What::Model(index) => {
                if self.members[index].turn.is_some() && self.random.u32(0..400) == 0 {
                    // The driver breaks.
                    self.members[index].turn = None;
                    self.members[index].session = self.members[index].session.clone();
                    return self.live(index, Some(LifeAnswer::Crashed("a panic".into())));
                }
                let reply = self.reply(index);
                self.answer(index, Answer::Reply(Box::new(reply)));
            }
            What::Tools(index, count) => {
                let done = CallAnswer { result: Ok(json!("worked")), elapsed: Duration::ZERO, ran: true };
                let answers = vec![Some(done); count];
                self.answer(index, Answer::Calls { answers, cancelled: false });
            }
            What::Wake(index, wait) | What::TimeOut(index, wait) if self.members[index].waiting != Some(wait) => {}
            What::Wake(index, _) => {
                self.members[index].waiting = None;
                self.live(index, Some(LifeAnswer::Woken));
            }
            What::TimeOut(index, _) => {
                self.members[index].waiting = None;
                self.live(index, Some(LifeAnswer::TimedOut));
            }
            What::Lead => {
                let to = ["ada", "bob", "carol", "张三", "张三丰", "all"][self.random.usize(0..6)];
                let text = format!("order {}", self.happening.len());
                drop(self.office.send("lead", Draft::new([to], text)));
                if self.now < BUSY {
                    let delay = self.random.u64(1..60);
                    self.at(delay, What::Lead);
                }
            }
            What::Cancel => {
                let index = self.random.usize(0..NAMES.len());
                if self.now > 0 && self.random.u32(0..8) == 0 && self.office.stop(NAMES[index]) {
                    let turn = self.members[index].turn.is_some();
                    if turn {
                        self.answer(index, Answer::Cancelled);
                    }
                }
                if self.now < BUSY {
                    let delay = self.random.u64(100..400);
                    self.at(delay, What::Cancel);
                }
            }
        }
    }

    fn run(&mut self) {
        while let Some(Reverse((time, _, index))) = self.queue.pop() {
            self.now = time;
            if let Some(what) = self.happening[index].take() {
                self.happen(what);
            }
            self.look();
        }
    }

    /// Takes in what the office has to say, and who was woken.
    fn look(&mut self) {
        let (events, revived) = self.office.news(Waker::noop());
        for event in events {
            let mut data = event.data.clone();
            if let Some(data) = data.as_object_mut() {
                data.remove("sent_at");
            }
            self.log.push(format!("{} {} {} {data}", self.now, event.kind, event.teammate));
            match event.kind {
                "mail" => {
                    let addressed: Vec<String> = match event.data["recipients"].as_array() {
                        Some(names) => names.iter().map(|name| name.as_str().unwrap().to_owned()).collect(),
                        None => Vec::new(),
                    };
                    let (id, sender) = (event.data["id"].as_str().unwrap(), event.teammate.as_str());
                    self.sent.push((id.to_owned(), sender.to_owned(), addressed));
                }
                "status" => {
                    let number = event.data["number"].as_u64().unwrap();
                    let last = self.statuses.insert(event.teammate.clone(), number).unwrap_or_default();
                    assert!(number > last, "an old status of {} came after a newer one", event.teammate);
                }
                "task" => self.note_task(&event.teammate, &event.data),
                _ => {}
            }
        }
        for name in revived {
            let index = NAMES.iter().position(|known| *known == name).unwrap();
            self.begin(index);
        }
        let woken: Vec<_> = self.woken.0.lock().unwrap().drain(..).collect();
        for (index, wait) in woken {
            let delay = self.random.u64(0..3);
            self.at(delay, What::Wake(index, wait));
        }
        for letter in self.office.lead_mail().unwrap() {
            self.told.push(letter.text.clone());
        }
    }

    /// A task has one owner at a time: it is never taken over without having been given back.
    fn note_task(&mut self, by: &str, task: &serde_json::Value) {
        let id = task["id"].as_str().unwrap().to_owned();
        match (task["state"].as_str().unwrap(), task["owner"].as_str()) {
            ("in_progress", Some(owner)) => {
                let before = self.owners.insert(id.clone(), owner.to_owned());
                assert!(before.is_none_or(|before| before == owner), "{id} was taken from its owner by {by}");
            }
            _ => drop(self.owners.remove(&id)),
        }
    }

    fn check(&self) {
        assert!(self.office.is_quiet(), "somebody is neither waiting nor at an end: {:?}", self.office.members());
        let views: HashMap<String, _> =
            self.office.members().into_iter().map(|view| (view.new.name.clone(), view)).collect();
        for member in &self.members {
            let view = &views[member.name];
            let is_gone = view.ended.as_ref().is_some_and(|ended| !ended.outcome.comes_back());
            let history = member.session.history();
            let delivered = delivered_in(&history);
            // Each letter stands in one message.
            let ids: Vec<_> = history
                .iter()
                .filter_map(|message| message.extra.get("mail")?.as_array())
                .flatten()
                .map(|id| id.as_str().unwrap().to_owned())
                .collect();
            assert_eq!(ids.len(), delivered.len(), "{} got a letter twice", member.name);
            for (id, sender, to) in self.sent.iter().filter(|(_, sender, _)| sender != member.name) {
                let to_all = sender == "lead" && to.iter().any(|name| name == "all");
                let to_me = to_all || to.iter().any(|name| name == member.name);
                if to_me && !is_gone {
                    assert!(delivered.contains(id), "{} never got {id}", member.name);
                }
            }
            // Letters of one sender come in the order in which they were sent.
            let mut last: HashMap<&str, usize> = HashMap::new();
            let number: HashMap<&str, (usize, &str)> = self
                .sent
                .iter()
                .enumerate()
                .map(|(index, (id, sender, _))| (id.as_str(), (index, sender.as_str())))
                .collect();
            for id in &ids {
                let Some((index, sender)) = number.get(id.as_str()) else { continue };
                let before = last.insert(sender, *index);
                assert!(before.is_none_or(|before| before < *index), "{id} overtook a letter of {sender}");
            }
            // Each call has one result.
            let calls: Vec<_> = history.iter().flat_map(|message| &message.tool_calls).map(|call| &call.id).collect();
            let results: HashSet<_> = history.iter().filter_map(|message| message.tool_call_id.as_ref()).collect();
            let open = calls.iter().filter(|id| !results.contains(**id)).count();
            let crashed = view.ended.as_ref().is_some_and(|ended| ended.outcome == Outcome::Crashed);
            assert!(open == 0 || crashed, "{} has calls without results", member.name);
            assert!(history.iter().filter(|message| message.role == Role::Tool).count() == results.len());
        }
        for task in self.office.tasks() {
            if task.state == TaskState::InProgress {
                let owner = task.owner.as_deref().expect("a task in progress has an owner");
                assert!(views[owner].ended.is_none(), "{} is {owner}'s, who has ended", task.id);
            }
        }
        let announced: Vec<_> = self.told.iter().filter(|text| text.contains(" has ended (")).collect();
        assert_eq!(announced.len(), self.ends.len(), "each end is announced once");
        for ((name, ended), text) in self.ends.iter().zip(announced) {
            assert!(text.starts_with(&format!("{name} has ended ({})", ended.outcome)), "{text}");
        }
    }
}

fn seeds() -> Vec<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse().ok());
    match number("TEAM_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("TEAM_SEEDS").unwrap_or(1000)).collect(),
    }
}

#[test]
fn what_has_to_hold_holds_for_every_seed() {
    let (mut letters, mut ends, mut back, mut held) = (0, HashMap::new(), 0, 0);
    for seed in seeds() {
        let mut world = World::new(seed);
        world.run();
        let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| world.check()));
        assert!(
            checked.is_ok(),
            "seed {seed}; the last that happened:\n{}",
            world.log[world.log.len().saturating_sub(30)..].join("\n")
        );
        letters += world.sent.len();
        back += world.members.iter().map(|member| member.lives - 1).sum::<usize>();
        held += world.log.iter().filter(|line| line.contains(" held ")).count();
        for (_, ended) in world.ends {
            *ends.entry(ended.outcome).or_insert(0) += 1;
        }
    }
    println!("{letters} letters, {back} came back, {held} holds, ends: {ends:?}");
    if seeds().len() >= 1000 {
        // A simulation in which nothing goes wrong proves nothing.
        for outcome in
            [Outcome::Done, Outcome::Idle, Outcome::Limit, Outcome::Error, Outcome::Cancelled, Outcome::Crashed]
        {
            assert!(ends.get(&outcome).is_some_and(|count| *count > 50), "hardly anybody ends as {outcome}: {ends:?}");
        }
        assert!(letters > 20_000 && back > 200 && held > 200);
    }
}

#[test]
fn the_same_seed_is_the_same_team() {
    for seed in 0..20 {
        let logs: Vec<_> = (0..2)
            .map(|_| {
                let mut world = World::new(seed);
                world.run();
                world.log
            })
            .collect();
        assert!(logs[0].len() > 100);
        let differs = logs[0].iter().zip(&logs[1]).find(|(one, other)| one != other);
        assert!(differs.is_none() && logs[0].len() == logs[1].len(), "seed {seed}: {differs:?}");
    }
}
