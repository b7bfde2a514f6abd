//! What is reported, and how it is shown: `table` for terminals, `json` for programs, `html` to read.

/// Numbers in words.
mod figures;
/// One page for a browser.
pub mod html;
/// For programs.
pub mod json;
/// What each monitor did over all sets, in short.
pub mod per_monitor;
/// For terminals.
pub mod table;

use serde::Serialize;

use crate::corpus::Split;
use crate::judge::Statistic;
use crate::splice::Kind;
use crate::stats::Estimate;
use crate::stats::agreement::Agreement;
use crate::stats::auc::Area;
use crate::stats::rate::Rate;

/// Everything that was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The seed of every draw.
    pub seed: u64,
    /// Shorter runs were left out.
    pub steps_min: usize,
    /// How many times tasks were drawn for an interval.
    pub resamples: usize,
    /// The judge that the verdicts and the false alarms are about.
    pub headline: String,
    /// Every set and split.
    pub sets: Vec<SetReport>,
    /// The average over sets, by judge, split and statistic.
    pub means: Vec<MeanReport>,
    /// What became of the planted faults.
    pub plants: Vec<PlantReport>,
    /// The targets, met or missed.
    pub verdicts: Vec<Verdict>,
    /// The part that the texts below come from.
    pub shown: Split,
    /// Successful runs in which the headline judge raised an alarm, the worst first.
    pub false_alarms: Vec<FalseAlarm>,
    /// Plants that the headline judge did not find.
    pub missed_plants: Vec<MissedPlant>,
}

impl Report {
    /// Every target with its verdicts, a split each.
    pub fn targets(&self) -> Vec<(&str, Vec<&Verdict>)> {
        let mut targets: Vec<(&str, Vec<&Verdict>)> = Vec::new();
        for verdict in &self.verdicts {
            match targets.iter_mut().find(|(target, _)| *target == verdict.target) {
                Some((_, verdicts)) => verdicts.push(verdict),
                None => targets.push((&verdict.target, vec![verdict])),
            }
        }
        targets
    }

    /// How many targets are met on a part, and how many could be measured.
    pub fn met(&self, split: Split) -> (usize, usize) {
        let of_split = self.verdicts.iter().filter(|verdict| verdict.split == split);
        let met: Vec<bool> = of_split.filter_map(|verdict| verdict.met).collect();
        (met.iter().filter(|met| **met).count(), met.len())
    }

    /// The averages of a part.
    pub fn means_of(&self, split: Split) -> impl Iterator<Item = &MeanReport> {
        self.means.iter().filter(move |mean| mean.split == split)
    }

    /// What became of the plants, all sets and ways together.
    pub fn pooled_plants(&self, split: Split) -> impl Iterator<Item = &PlantReport> {
        let pooled = move |plant: &&PlantReport| {
            plant.split == split && plant.set.is_none() && plant.variant.is_none()
        };
        self.plants.iter().filter(pooled)
    }

    /// The report in a sentence.
    pub fn sentence(&self) -> String {
        let sets = self.sets.iter().filter(|set| set.split == Split::All);
        let (mut runs, mut tasks, mut count) = (0, 0, 0);
        for set in sets {
            (runs, tasks, count) = (runs + set.runs, tasks + set.tasks, count + 1);
        }
        let ((met, of), (met_held_out, of_held_out)) =
            (self.met(Split::All), self.met(Split::HeldOut));
        format!(
            "The judge “{}” meets {met} of {of} targets on {} of {} from {}, and {met_held_out} of \
             {of_held_out} on the tasks held out.",
            self.headline,
            figures::counted(runs, "run"),
            figures::counted(tasks, "task"),
            figures::counted(count, "set"),
        )
    }
}

/// One split of one set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SetReport {
    /// The set's name.
    pub set: String,
    /// Which part of it.
    pub split: Split,
    /// Runs that are long enough.
    pub runs: usize,
    /// Those that succeeded.
    pub successes: usize,
    /// Those that failed; the rest is unknown.
    pub failures: usize,
    /// Different tasks.
    pub tasks: usize,
    /// The median number of steps.
    pub steps_median: usize,
    /// What each judge made of it.
    pub judges: Vec<JudgeReport>,
}

impl SetReport {
    /// People have labelled steps of it.
    pub fn has_labels(&self) -> bool {
        self.judges.iter().any(|judge| judge.agreement.is_some())
    }
}

/// One judge on one split of one set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JudgeReport {
    /// The judge's name.
    pub judge: String,
    /// Successful runs in which any monitor fires.
    pub fires_on_successes: Rate,
    /// Failed runs in which any monitor fires.
    pub fires_on_failures: Rate,
    /// How well the composite tells failures from successes, by statistic.
    pub composite: Vec<CompositeReport>,
    /// The same from the first steps only.
    pub early: Vec<EarlyReport>,
    /// Agreement with people on the step, where there are labels.
    pub agreement: Option<Agreement>,
    /// Each monitor alone.
    pub monitors: Vec<MonitorReport>,
}

impl JudgeReport {
    /// The composite by that statistic.
    pub fn composite(&self, statistic: Statistic) -> Option<&CompositeReport> {
        self.composite.iter().find(|row| row.statistic == statistic)
    }

    /// The area of the composite's mean over the first steps.
    pub fn early(&self, steps: usize) -> Option<Area> {
        let mut rows = self.early.iter().filter(|row| row.steps == steps);
        rows.find(|row| row.statistic == Statistic::Mean).and_then(|row| row.raw)
    }
}

/// The composite as one number a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CompositeReport {
    /// How the series became one number.
    pub statistic: Statistic,
    /// Between all runs.
    pub raw: Option<Area>,
    /// Between runs of nearly equal length.
    pub matched: Option<Area>,
}

/// The composite of the first steps, among runs that have as many.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EarlyReport {
    /// How many steps were looked at.
    pub steps: usize,
    /// How the series became one number.
    pub statistic: Statistic,
    /// Between all of them.
    pub raw: Option<Area>,
}

/// One monitor on one split of one set; its score is the peak.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MonitorReport {
    /// The monitor's name.
    pub monitor: String,
    /// Successful runs in which it fires.
    pub fires_on_successes: Rate,
    /// Failed runs in which it fires.
    pub fires_on_failures: Rate,
    /// Between all runs.
    pub raw: Option<Area>,
    /// Between runs of nearly equal length.
    pub matched: Option<Area>,
    /// Agreement with people on the step, where there are labels.
    pub agreement: Option<Agreement>,
}

/// The average area over the sets that have enough pairs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MeanReport {
    /// The judge's name.
    pub judge: String,
    /// Which part of every set.
    pub split: Split,
    /// How the series became one number.
    pub statistic: Statistic,
    /// The sets averaged.
    pub sets: Vec<String>,
    /// The average of the raw areas.
    pub raw: f64,
    /// The average of the matched areas; the interval draws tasks within every set.
    pub matched: Estimate,
}

/// What became of the plants of one kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlantReport {
    /// The judge's name.
    pub judge: String,
    /// The set, or `None` for all sets together.
    pub set: Option<String>,
    /// Which part.
    pub split: Split,
    /// What was planted.
    pub kind: Kind,
    /// In which way, or `None` for all ways together.
    pub variant: Option<String>,
    /// Plants at which any monitor raised an alarm in time.
    pub recall: Rate,
    /// Plants at which a monitor meant for the kind did.
    pub recall_intended: Rate,
    /// How many each monitor found alone.
    pub found_by: Vec<FoundBy>,
    /// Runs with an alarm before the plant.
    pub alarms_before: Rate,
    /// The median number of steps from the plant to the alarm.
    pub delay_median: Option<usize>,
}

/// What one monitor found of the plants of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FoundBy {
    /// The monitor's name.
    pub monitor: String,
    /// Plants at which it raised an alarm in time.
    pub plants: usize,
}

/// What a target asks of a number.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// This, or less.
    AtMost(f64),
    /// This, or more.
    AtLeast(f64),
}

impl Bound {
    /// Whether the number is good enough.
    pub fn is_met_by(self, value: f64) -> bool {
        match self {
            Self::AtMost(bound) => value <= bound,
            Self::AtLeast(bound) => value >= bound,
        }
    }
}

/// How a number is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Of a hundred.
    Share,
    /// Between 0 and 1.
    Area,
}

/// One target.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// What is asked.
    pub target: String,
    /// The number to reach.
    pub bound: Bound,
    /// How numbers of it are written.
    pub unit: Unit,
    /// The planted fault it is about, if it is about one.
    pub kind: Option<Kind>,
    /// On which part.
    pub split: Split,
    /// What was reached; `None` where there is nothing to measure.
    pub value: Option<f64>,
    /// What it rests on, in words.
    pub detail: String,
    /// Whether it is reached; `None` where there is nothing to measure.
    pub met: Option<bool>,
}

/// An alarm in a run that succeeded, to be read by a person.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FalseAlarm {
    /// The set.
    pub set: String,
    /// The run.
    pub run: String,
    /// The beginning of the task.
    pub task: String,
    /// The step at which the alarm begins.
    pub step: usize,
    /// Of how many.
    pub steps: usize,
    /// The monitor.
    pub monitor: String,
    /// The composite at that step.
    pub composite: f64,
    /// The evidence.
    pub sentence: String,
    /// The beginning of the thought.
    pub thought: String,
    /// The tool and the beginning of its argument.
    pub action: String,
    /// The beginning of what came back.
    pub observation: String,
    /// The actions just before, a line each.
    pub before: Vec<String>,
}

/// A planted fault that was not found, to be read by a person.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MissedPlant {
    /// What was planted.
    pub kind: Kind,
    /// In which way.
    pub variant: String,
    /// The set.
    pub set: String,
    /// The run it was planted into.
    pub run: String,
    /// The step at which the fault begins.
    pub start: usize,
    /// Of how many.
    pub steps: usize,
    /// The beginning of the task.
    pub task: String,
    /// The first planted steps: thought, action and observation, cut.
    pub shown: Vec<String>,
}

#[cfg(test)]
mod tests;
