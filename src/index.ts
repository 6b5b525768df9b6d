/** The Worker's entry: the queue on its own, with no handlers of its own. */
import * as built from './http/ui/built';
import { serveDashboard } from './http/ui/routes';
import { createTocsin } from './library/create';

export { Tocsin, TocsinHandlers } from './library/entrypoints';
export { DirectoryObject, QueueObject, UniqueLockObject, WorkflowObject } from './library/objects';

serveDashboard(built);

export default createTocsin().worker();
