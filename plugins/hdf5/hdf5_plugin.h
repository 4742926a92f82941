// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/* The whole interface between Lockstep and libhdf5, opened at run time: as packaged the library brings thirty others
 * along (curl, TLS, Kerberos), which no other command shall load. Not for several threads at once. */

#define LOCKSTEP_HDF5_VERSION 4
#define LOCKSTEP_HDF5_ENTRY "lockstep_hdf5_plugin"
#define LOCKSTEP_HDF5_MAX_AXES 8

extern "C" {

typedef struct lockstep_hdf5_file lockstep_hdf5_file;

typedef struct lockstep_hdf5_array {
  const char* name; /* its path in the file */
  char type[3];     /* "u1" to "f8", as .npy files spell it */
  int32_t axes;     /* 1 or more */
  int64_t shape[LOCKSTEP_HDF5_MAX_AXES];
  char missing_filter[64]; /* one that packed it and that this libhdf5 has not; empty: none */
} lockstep_hdf5_array;

typedef struct lockstep_hdf5_other {
  const char* name;   /* its path in the file */
  const char* reason; /* why it is none of the arrays: "compound numbers or records" */
} lockstep_hdf5_other;

/* An attribute of a group or array, one number or one text; or one that is to be written. */
typedef struct lockstep_hdf5_attribute {
  char kind; /* 'n' number, 't' text; 0: there is none, or it is something else */
  double number;
  char text[512]; /* what is longer is cut off */
} lockstep_hdf5_attribute;

/* An array of bytes that is to be written, packed by deflate. */
typedef struct lockstep_hdf5_bytes {
  const char* name; /* its path in the file; groups on the way are made */
  int32_t axes;
  int64_t shape[LOCKSTEP_HDF5_MAX_AXES];
  const void* bytes;
} lockstep_hdf5_bytes;

typedef struct lockstep_hdf5_named {
  const char* object; /* path of the group; "": the file itself */
  const char* name;
  lockstep_hdf5_attribute value;
} lockstep_hdf5_named;

typedef struct lockstep_hdf5 {
  int32_t version;
  lockstep_hdf5_file* (*open)(const char* path); /* null: no HDF5 file, or a damaged one */
  /* Arrays of plain numbers that lie in this very file. */
  int64_t (*num_arrays)(const lockstep_hdf5_file* file);
  const lockstep_hdf5_array* (*array)(const lockstep_hdf5_file* file, int64_t i);
  /* `count` rows of array i from `row` on, in C order: little-endian in the array's type, or each as an int64. 0: done
   */
  int (*read)(const lockstep_hdf5_file* file, int64_t i, int64_t row, int64_t count, int as_int64, void* to);
  void (*close)(lockstep_hdf5_file* file);
  /* What else is stored in it: datasets that cannot be read here. */
  int64_t (*num_others)(const lockstep_hdf5_file* file);
  const lockstep_hdf5_other* (*other)(const lockstep_hdf5_file* file, int64_t i);
  /* Of the object at a path ("": the file). */
  void (*attribute)(const lockstep_hdf5_file* file, const char* object, const char* name, lockstep_hdf5_attribute* to);
  /* A new file in place of whatever has the name. 0: done */
  int (*write)(const char* path, const lockstep_hdf5_bytes* arrays, int64_t num_arrays,
               const lockstep_hdf5_named* attributes, int64_t num_attributes);
} lockstep_hdf5;

const lockstep_hdf5* lockstep_hdf5_plugin(void);

}  // extern "C"
