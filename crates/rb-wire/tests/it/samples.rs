//! Import of real transcripts: every file of a folder is recognised and read. Skipped if the folder is missing.

use std::path::PathBuf;

use rb_wire::transcripts::{Diagnostic, sniff};

use crate::render::render;

/// `RB_SAMPLES`, or the folder `shared/samples` beside the repository.
fn samples() -> Option<PathBuf> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/samples");
    let folder = std::env::var_os("RB_SAMPLES").map_or(beside, PathBuf::from);
    folder.is_dir().then_some(folder)
}

#[test]
fn every_sample_is_read() {
    let Some(folder) = samples() else {
        eprintln!("no folder of samples; set RB_SAMPLES to one");
        return;
    };
    let mut files = 0;
    let within = |path: &PathBuf| std::fs::read_dir(path).expect("a folder");
    let folders = within(&folder).map(|entry| entry.expect("an entry").path());
    for file in folders.filter(|path| path.is_dir()).flat_map(|path| within(&path)) {
        let path = file.expect("an entry").path();
        let bytes = std::fs::read(&path).expect("a file");
        let importer = sniff(&bytes).map(|importer| importer.id).unwrap_or_default();
        assert_ne!(importer, "", "{} is not recognised", path.display());
        let found = (crate::fixtures::importer(importer).parse)(&bytes);
        eprintln!("== {} {importer}\n{}", path.display(), render(&found, 50));
        assert!(!found.1.iter().any(Diagnostic::is_loss), "{}", path.display());
        // Label files and traces of other programs contain no steps, but yield a diagnostic.
        let steps: usize = found.0.iter().map(|run| run.steps.len()).sum();
        assert!(steps > 0 || !found.1.is_empty(), "{} is silent", path.display());
        files += 1;
    }
    assert!(files > 0, "{} holds no files", folder.display());
}
