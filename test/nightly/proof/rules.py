# SPDX-License-Identifier: MIT
"""The rules of exclusion that the proof can take out: the name of the weakened protocol, and the rule in a sentence."""

RULES = {
    "two quorums need not meet": "Any two quorums have a master in common.",
    "guard time too short": "A master that may have forgotten keys waits for at least the longest validity.",
    "SET without NX": "A SET grants only a key that is free.",
    "a key may expire early": "The validity is shorter than the key's life by the drift of the clocks.",
    "a delete before the end": "A value is deleted only after the end of its lock.",
    "a delete without compare": "A delete compares the value.",
    "a vote of an earlier round counts": "A reply votes only in the round that asked.",
    "valid from the decision": "The validity counts from before the first byte of the round, not from its decision.",
    "extend after expiry": "A lock that has expired is not extended.",
    "an ended lock is revived": "A lock that was given up is not revived by a late answer.",
    "an extend counts a key that is not its own": "An extend counts only a key that exists and bears its value.",
    "an extend shortens": "An extend never shortens the life of a key.",
    "a put-back votes": "A put-back votes only in a later round.",
    "put-back without NX": "A put-back writes only a key that is free.",
    "nothing is compared": "A script votes only on a master whose record is sealed for its present identity.",
    "the record alone is compared": "A script compares the server's replication id, and not the record alone.",
    "the role is not compared": "A replica does not vote.",
    "the quarantine id is not compared in the seal": "A seal is written only over the quarantine id that was watched.",
    "no quarantine id": "A watch begins with a quarantine id that nobody has used before.",
    "whatever is found is sealed": "What is sealed at the end of a watch is what was watched from its beginning.",
    "a watch counts from before its reading": "A watch counts from the reading that it rests on.",
    "a restart keeps the replication id": "A server that restarts has another replication id.",
    "a promotion keeps the replication id": "A replica that is promoted has another replication id.",
    "a plain command on an untracked connection": "A plain command goes only where a push tells of each FLUSHALL.",
    "a plain reply counts after a push": "A reply that comes behind the push that all keys are gone does not count.",
    "plain extends always": "An extend that compares no record votes only where a plain SET may.",
    "a late extend counts": "An extend of an earlier round does not count, nor a plain one behind a push.",
    "plain commands always": "Plain commands go only to a master without replicas.",
    "the backlog is not asked": "A master that keeps a backlog gets no plain commands, even without replicas.",
    "a reading never lapses": "Plain commands rest on one reading for a short time.",
    "a role cycle within one reading": "A replica is attached for longer than a reading's life before it is promoted.",
    "a visit compares nothing": "A visit is noted only of the state that was watched.",
    "a visit seals any state": "An old visit seals only the state that it names.",
}
# Without these everything is still proved. They stay as second lines of defence.
NOT_NEEDED = {
    "the identity is not compared in the seal": "A seal is written only for the identity that was watched.",
}
