import { describe, expect, it } from 'vitest';
import { VERBS as DIRECTORY } from '../../src/directory/verbs';
import { UniqueLockObject } from '../../src/locks/object';
import { VERBS as QUEUE } from '../../src/queue/verbs';
import { WorkflowObject } from '../../src/workflow/object';
import released from './fixtures/verbs.json';

const methodsOf = ({ prototype }: { prototype: object }) => Object.getOwnPropertyNames(prototype);

/** The verbs of each class. After a deploy, Workers and objects of the version before call them for minutes. */
const VERBS = {
  queue: Object.keys(QUEUE),
  directory: Object.keys(DIRECTORY),
  locks: methodsOf(UniqueLockObject),
  workflow: methodsOf(WorkflowObject),
};

describe('a verb of the version before', () => {
  it.each(Object.keys(VERBS) as (keyof typeof VERBS)[])('is still answered by the objects of this one: %s', (kind) => {
    expect(VERBS[kind]).toEqual(expect.arrayContaining(released[kind]));
  });
});
