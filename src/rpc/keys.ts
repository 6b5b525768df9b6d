/** Keys made at run time over RPC. */
import type { KeyRecord } from '../job/keys';

/** The list of keys, as an isolate holds it. */
export interface KeyList {
  /** Changes with each change of the list. */
  version: string;
  /** Absent: the caller has this version. */
  keys?: KeyRecord[];
}
