/** The part of the directory's interface that is about the schemas of jobs. */
import type { RegisteredSchema } from '../job/schemas/registry';
import type { SchemaStamp } from '../job/schemas/stamp';

/** All schemas, at one moment. */
export interface SchemaSet {
  /** Absent: there never were any. */
  stamp?: SchemaStamp;
  schemas: RegisteredSchema[];
}
