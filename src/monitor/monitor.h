/*
 * monitor.h
 *		Functions that show the state of an index (src/monitor/README.md).
 */
#ifndef QV_MONITOR_MONITOR_H
#define QV_MONITOR_MONITOR_H

/* Installs the planner hook of recall.c, at load. */
extern void QvMonitorInit(void);

/* Installs the hooks of notices.c, at load. */
extern void QvNoticesInit(void);

#endif							/* QV_MONITOR_MONITOR_H */
