/** Which unique jobs of a queue keep others away, as operators see them. */
import type * as contract from '../contract/unique-jobs';

/** Where a list of them continues: after this job. */
export interface UniquePlace {
  fingerprint: string;
  key: number;
}

/** A unique job that stands in the way of others with its fingerprint. Times in epoch ms. */
export interface HeldUnique extends UniquePlace, Pick<contract.HeldUnique, 'job_id' | 'type' | 'state'> {
  created_at: number;
  /** When its period ends; absent: it stands in the way for as long as its state counts. */
  until?: number;
}

export interface HeldUniques {
  items: HeldUnique[];
  looked: number;
  /** Not all were looked at: those after this place were not. */
  next?: UniquePlace;
}
