//! Detection of injected faults by scorers.

use std::fmt::Write as _;

use rb_quality::corpus::LabelledRun;
use rb_quality::scorer::{Scorer, Trace, traces};
use rb_quality::stats::median;
use rb_quality::stats::rate::Rate;
use rb_quality::table::rate;

use crate::fault_injection::{DETECTION_STEPS, FaultKind, FaultyRun};

/// The detection of one kind of fault by one scorer.
pub(crate) struct Detection {
    pub(crate) scorer: String,
    pub(crate) kind: FaultKind,
    /// Number of faults.
    pub(crate) faults: usize,
    /// The monitors of each detected fault, without duplicates.
    pub(crate) detected_by: Vec<Vec<&'static str>>,
    /// Steps from the beginning of each detected fault to the first alarm.
    delays: Vec<usize>,
    /// Runs with an alarm before the fault.
    alarms_before: usize,
}

/// Scores the faulty runs with every scorer that has monitors.
pub(crate) fn detect(faulty: &[FaultyRun], scorers: &[&dyn Scorer]) -> Vec<Detection> {
    let runs: Vec<&LabelledRun> = faulty.iter().map(|faulty| &faulty.run).collect();
    let mut detections = Vec::new();
    for scorer in scorers.iter().filter(|scorer| !scorer.monitors().is_empty()) {
        let traces = traces(*scorer, &runs, &());
        for kind in FaultKind::ALL {
            let mut detection = Detection {
                scorer: scorer.name().to_owned(),
                kind,
                faults: 0,
                detected_by: Vec::new(),
                delays: Vec::new(),
                alarms_before: 0,
            };
            for (fault, trace) in faulty.iter().zip(&traces).filter(|(fault, _)| fault.kind == kind)
            {
                detection.add(fault, trace, &scorer.monitors());
            }
            if detection.faults > 0 {
                detections.push(detection);
            }
        }
    }
    detections
}

impl Detection {
    /// Counts alarms where they begin: an alarm that has been on since before the fault does not detect it.
    fn add(&mut self, fault: &FaultyRun, trace: &Trace, monitors: &[&'static str]) {
        self.faults += 1;
        self.alarms_before += usize::from(trace.alarms().any(|(at, _)| at < fault.changed_from));
        let in_time = fault.start..=fault.start + DETECTION_STEPS;
        let alarms = || trace.alarms().filter(|(at, _)| in_time.contains(at));
        let Some((first, _)) = alarms().next() else { return };
        self.delays.push(first - fault.start);
        let mut by: Vec<&str> = alarms().map(|(_, fired)| monitors[fired.monitor]).collect();
        by.sort_unstable();
        by.dedup();
        self.detected_by.push(by);
    }

    /// Faults that a monitor meant for the kind has detected.
    fn intended(&self) -> usize {
        let is_intended = |by: &&Vec<&str>| by.iter().any(|id| self.kind.intended().contains(id));
        self.detected_by.iter().filter(is_intended).count()
    }
}

/// One row per kind and scorer.
pub(crate) fn table(detections: &[Detection]) -> String {
    let mut out = format!("Injected faults, detected within {DETECTION_STEPS} steps\n");
    for detection in detections {
        let share = |hits| rate(Rate::wilson(hits, detection.faults));
        let _ = writeln!(
            out,
            "{:19}  {:9}  {:>4} faults  detected {:15}  by a monitor meant for it {:15}  alarms before {:13}  median delay {}",
            detection.kind.plural(),
            detection.scorer,
            detection.faults,
            share(detection.detected_by.len()),
            share(detection.intended()),
            share(detection.alarms_before),
            median(detection.delays.clone())
                .map_or_else(|| "–".to_owned(), |delay| delay.to_string()),
        );
    }
    out
}

/// Prints a fault with its first steps.
pub(crate) fn print(fault: &FaultyRun) {
    let FaultyRun { run, kind, variant, changed_from, start } = fault;
    println!(
        "{} ({variant}) at step {start} of {}: {} {}",
        kind.plural(),
        run.steps.len(),
        run.set,
        run.id
    );
    for (at, step) in run.steps.iter().enumerate().skip(*changed_from).take(7) {
        println!(
            "{at:>3}   {:?}\n    > {:?}\n    < {:?}",
            step.thought,
            [&step.tool, &step.input],
            step.observation
        );
    }
}

#[cfg(test)]
mod tests {
    use rb_quality::corpus::OwnedStep;
    use rb_quality::scorer::{Fired, TracedStep};

    use super::*;

    #[test]
    fn alarms_in_time_detect_a_fault() {
        let fault = FaultyRun {
            run: LabelledRun { steps: vec![OwnedStep::default(); 20], ..LabelledRun::default() },
            kind: FaultKind::Loop,
            variant: "exact",
            changed_from: 8,
            start: 9,
        };
        // The step of the alarm; detected, detected by a monitor meant for it, alarm before the fault.
        for (step, monitor, expected) in [
            (7, 0, (0, 0, 1)),
            (8, 0, (0, 0, 0)),
            (9, 0, (1, 1, 0)),
            (14, 0, (1, 1, 0)),
            (14, 1, (1, 0, 0)),
            (15, 0, (0, 0, 0)),
        ] {
            let mut trace = Trace { steps: vec![TracedStep::default(); 20] };
            trace.steps[step].fired.push(Fired { monitor, begins: true });
            let mut detection = Detection {
                scorer: String::new(),
                kind: FaultKind::Loop,
                faults: 0,
                detected_by: Vec::new(),
                delays: Vec::new(),
                alarms_before: 0,
            };
            detection.add(&fault, &trace, &["semantic_loop", "hedge"]);
            let found =
                (detection.detected_by.len(), detection.intended(), detection.alarms_before);
            assert_eq!(found, expected, "alarm at step {step}");
        }
    }
}
