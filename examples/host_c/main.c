/* Sum the columns of a matrix with OpenCL: the host side of column_sum.cl.
 *
 *     cc -o column_sum main.c -lOpenCL && ./column_sum
 *
 * A variant of the kernel that needs another NDRange edits the sizes below together with the kernel.
 */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>

#define ROWS 1024
#define COLS 4096

static void check(cl_int status, const char *what)
{
    if (status != CL_SUCCESS) {
        fprintf(stderr, "%s failed with status %d\n", what, status);
        exit(1);
    }
}

static char *read_text(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        exit(1);
    }
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    char *text = malloc(size + 1);
    text[fread(text, 1, size, file)] = '\0';
    fclose(file);
    return text;
}

int main(void)
{
    cl_platform_id platform;
    cl_device_id device;
    cl_int status;
    check(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
    check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "clGetDeviceIDs");
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
    check(status, "clCreateContext");
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &status);
    check(status, "clCreateCommandQueue");

    const char *source = read_text("column_sum.cl");
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
    check(status, "clCreateProgramWithSource");
    check(clBuildProgram(program, 1, &device, "", NULL, NULL), "clBuildProgram");
    cl_kernel kernel = clCreateKernel(program, "column_sum", &status);
    check(status, "clCreateKernel");

    size_t bytes = sizeof(float) * ROWS * COLS;
    float *matrix = malloc(bytes);
    for (int i = 0; i < ROWS * COLS; i++)
        matrix[i] = (float)(i % 7);
    cl_mem src = clCreateBuffer(context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, bytes, matrix, &status);
    check(status, "clCreateBuffer");
    cl_mem dst = clCreateBuffer(context, CL_MEM_WRITE_ONLY, sizeof(float) * COLS, NULL, &status);
    check(status, "clCreateBuffer");

    cl_int rows = ROWS, cols = COLS;
    clSetKernelArg(kernel, 0, sizeof src, &src);
    clSetKernelArg(kernel, 1, sizeof dst, &dst);
    clSetKernelArg(kernel, 2, sizeof rows, &rows);
    clSetKernelArg(kernel, 3, sizeof cols, &cols);

    size_t global[1] = {COLS};
    check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, global, NULL, 0, NULL, NULL), "clEnqueueNDRangeKernel");

    float *sums = malloc(sizeof(float) * COLS);
    check(clEnqueueReadBuffer(queue, dst, CL_TRUE, 0, sizeof(float) * COLS, sums, 0, NULL, NULL), "clEnqueueReadBuffer");
    int wrong = 0;
    for (int c = 0; c < COLS; c++) {
        float expected = 0.0f;
        for (int r = 0; r < ROWS; r++)
            expected += matrix[r * COLS + c];
        wrong += sums[c] != expected;
    }
    printf("%d of %d columns differ\n", wrong, COLS);
    return wrong != 0;
}
