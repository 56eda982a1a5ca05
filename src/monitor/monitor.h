/*
 * monitor.h
 *		Functions that show the state of an index (src/monitor/README.md).
 */
#ifndef QV_MONITOR_MONITOR_H
#define QV_MONITOR_MONITOR_H

/* Installs the planner hook of recall.c, at load. */
extern void QvMonitorInit(void);

#endif							/* QV_MONITOR_MONITOR_H */
