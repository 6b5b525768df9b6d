import { describe, expect, inject, it } from 'vitest';
import { runVectors } from './vectors';
import own from './vectors.json';

describe('retry vectors of the project', () => {
  it('are all there, each with an id of its own', () => {
    expect(own.vectors).toHaveLength(own.count);
    expect(new Set(own.vectors.map((vector) => vector.id)).size).toBe(own.count);
  });
  runVectors(own.vectors);
});

const shared = inject('sharedRetryVectors');

describe.skipIf(!shared)('retry vectors from outside', () => {
  it('is not an empty file', () => expect(shared?.length).toBeGreaterThan(0));
  runVectors(shared ?? []);
});
